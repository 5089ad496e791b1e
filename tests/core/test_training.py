import itertools

import numpy as np
import pytest

from ccq_core.features import FeatureSet, check_features
from ccq_core.mappings import procrustes, ridge
from ccq_core.quantizer import Effort, decode
from ccq_core.source import InMemory
from ccq_core.training import Objects, Room, fuse, initial_mappings, train
from tests.core.conftest import make_pairs


def run(x: FeatureSet, **changes):
    settings = {
        "m": 2,
        "dim": 5,
        "rows": 1000,
        "weights": {name: 1.0 + i for i, name in enumerate(x)},
        "effort": Effort(),
        "iterations": 12,
        "tolerance": 0.0,
        "ridge": 1e-6,
        "solver": "cholesky",
        "start": "joint",
        "rng": np.random.default_rng(0),
    }
    settings |= changes
    kept = dict(settings)
    objects = Objects(InMemory(x, kept.pop("rows")), kept.pop("weights"))
    return train(objects, room(x.n, kept.pop("m")), **kept), settings


def room(n, m):
    return Room(np.zeros((n, m), dtype=np.uint8), np.zeros(n, dtype=np.float32))


def centred(n=400, dims=(12, 8), missing=0.0, seed=0):
    data = make_pairs(n, seed=seed, dims=dims)
    data = {name: array - array.mean(axis=0) for name, array in data.items()}
    rng = np.random.default_rng(9)
    if missing:
        absent = rng.random((n, len(dims))) < missing
        absent[absent.all(axis=1), 0] = False
        for i, array in enumerate(data.values()):
            array[absent[:, i]] = np.nan
    return check_features(data)


def eqn4(x, trained, weights):
    """The paper's objective, Eqn. 4, written out."""
    y = decode(trained.codebooks, trained.codes).astype(np.float64)
    total = 0.0
    for name, array in x.arrays.items():
        residual = array - y @ trained.mappings[name].T.astype(np.float64)
        total += weights[name] * np.square(residual)[x.present[name]].sum()
    return total


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("dims", [(12, 8), (12, 8, 9)])
def test_reported_loss_is_eqn_4_over_the_energy(dims, missing):
    x = centred(dims=dims, missing=missing)
    trained, settings = run(x)
    weights = settings["weights"]
    energy = sum(weights[v] * np.square(x.arrays[v].astype(np.float64)).sum() for v in x)
    assert trained.losses[-1] == pytest.approx(eqn4(x, trained, weights) / energy, rel=1e-4)


@pytest.mark.parametrize("start", ["joint", "identity"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_every_iteration_lowers_the_loss(start, missing):
    trained, _ = run(centred(missing=missing), start=start)
    losses = np.array(trained.losses)
    assert len(losses) > 2
    assert (np.diff(losses) <= 1e-5).all()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("effort", [Effort(), Effort(beam=4)])
def test_batches_of_any_size_give_the_same_model(effort):
    x = centred(n=1000, dims=(12, 8, 9), missing=0.3)
    whole, *parts = [run(x, effort=effort, iterations=6, rows=rows)[0] for rows in (1000, 999, 130)]
    for part in parts:
        assert part.losses == pytest.approx(whole.losses, rel=1e-3)
        assert (part.codes == whole.codes).mean() > 0.97  # where rounding decides, it may decide otherwise


def test_conjugate_gradients_train_as_well_and_form_no_large_matrix(monkeypatch):
    x = centred(n=2000, dims=(12, 8, 9), missing=0.3)
    direct, _ = run(x, m=4, rows=300)
    monkeypatch.setattr("ccq_core.training.code_counts", None)
    monkeypatch.setattr("ccq_core.training.solve_codebooks", None)
    descent, _ = run(x, m=4, rows=300, solver="cg")
    assert descent.losses[0] == pytest.approx(direct.losses[0], rel=1e-2)
    assert descent.losses[-1] < 1.03 * direct.losses[-1]


@pytest.mark.parametrize("dims", [(12, 8), (12, 8, 9)])
def test_sums_to_regress_on_are_those_of_features_and_reconstructions(dims):
    x = centred(n=500, dims=dims)
    trained, _ = run(x, rows=64)
    y = decode(trained.codebooks, trained.codes)
    for name, array in x.arrays.items():
        assert np.allclose(trained.crosses[name], array.T @ y, rtol=1e-3, atol=1e-2)
        assert np.allclose(trained.grams[name], array.T @ array, rtol=1e-3, atol=1e-2)


def test_objects_count_by_the_company_they_have():
    x = centred(n=900, dims=(12, 8, 9), missing=0.4)
    trained, settings = run(x, rows=64)
    y = decode(trained.codebooks, trained.codes)
    weights = settings["weights"]
    for name, array in x.arrays.items():
        others = [v for v in x if v != name]
        company = sum(weights[v] * x.present[v] for v in others) / sum(weights[v] for v in others)
        full = sum(weights.values())
        total = weights[name] + sum(weights[v] * x.present[v] for v in others)
        share = company * full / total  # of y from others, 1 where all are there
        alone = x.present[name] & (company == 0)
        share[alone] = min(1.0, array.shape[1] / alone.sum())
        share *= x.present[name]
        assert np.allclose(trained.crosses[name], (array * share[:, None]).T @ y, rtol=1e-3, atol=1e-2)
        assert np.allclose(trained.grams[name], (array * share[:, None]).T @ array, rtol=1e-3, atol=1e-2)
        assert share[alone].sum() == pytest.approx(array.shape[1])


def test_matrices_that_are_applied_late_change_nothing():
    rng = np.random.default_rng(3)
    x = centred(n=800, missing=0.3)
    matrices = {name: rng.standard_normal((p, p)).astype(np.float32) for name, p in x.dims.items()}
    turned = FeatureSet({name: x.arrays[name] @ matrix for name, matrix in matrices.items()}, x.present, x.n)
    early, _ = run(turned)
    late = train(
        Objects(InMemory(x, 100), {"image": 1.0, "text": 2.0}, matrices),
        room(x.n, 2), dim=5, effort=Effort(), iterations=12, tolerance=0.0, ridge=1e-6, solver="cholesky",
        start="joint", rng=np.random.default_rng(0),
    )  # fmt: skip
    assert late.losses[-1] == pytest.approx(early.losses[-1], rel=1e-2)
    for name in x:
        assert np.allclose(late.grams[name], early.grams[name], rtol=1e-3, atol=1e-1)


def test_mappings_are_orthonormal():
    trained, _ = run(centred())
    for r in trained.mappings.values():
        assert np.allclose(r.T @ r, np.eye(5), atol=1e-5)


def test_training_explains_most_of_structured_data():
    trained, _ = run(centred(), m=4)
    assert trained.losses[-1] < 0.15


def test_wholly_unpaired_modalities_train():
    x = make_pairs(400)
    x["image"][:200] = np.nan
    x["text"][200:] = np.nan
    trained, _ = run(check_features({k: v - np.nanmean(v, axis=0) for k, v in x.items()}))
    assert np.isfinite(trained.losses).all()
    assert trained.losses[-1] < 0.5


def test_unpaired_objects_improve_a_model_with_few_pairs():
    """The purpose of semi-paired training: mappings and codebooks see more data."""
    many = make_pairs(1000, seed=1)
    held_out = make_pairs(500, seed=2)
    mean = {name: array.mean(axis=0) for name, array in many.items()}
    x = {name: array - mean[name] for name, array in many.items()}
    few = check_features({name: array[:30] for name, array in x.items()})
    x["image"][30:500] = np.nan
    x["text"][500:] = np.nan
    both = check_features(x)

    def unexplained(trained):
        from ccq_core.quantizer import AdditiveQuantizer

        test = check_features({name: array - mean[name] for name, array in held_out.items()})
        z, _ = fuse({v: test.arrays[v] @ r for v, r in trained.mappings.items()}, test, {"image": 1.0, "text": 1.0})
        y = decode(trained.codebooks, AdditiveQuantizer(trained.codebooks).encode(z))
        return sum(np.square(test.arrays[v] - y @ trained.mappings[v].T).sum() for v in test)

    assert unexplained(run(both)[0]) < 0.8 * unexplained(run(few)[0])


def test_convergence_stops_early_and_callback_sees_every_iteration():
    seen = []
    trained, _ = run(centred(), iterations=100, tolerance=1e-3, callback=seen.append)
    assert len(trained.losses) < 100
    assert [p.loss for p in seen] == trained.losses
    assert [p.iteration for p in seen] == list(range(1, len(seen) + 1))
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))


def test_a_beam_finds_better_codebooks_and_the_same_ones_each_time():
    x = check_features({"image": np.random.default_rng(5).standard_normal((3000, 16))})
    plain, beam, again = (run(x, dim=16, effort=effort)[0] for effort in (Effort(), Effort(beam=4), Effort(beam=4)))
    assert beam.losses[-1] < 0.97 * plain.losses[-1]
    assert beam.codebooks.tobytes() == again.codebooks.tobytes()
    assert beam.codes.tobytes() == again.codes.tobytes()


def test_training_does_not_stop_while_codewords_are_perturbed():
    trained, _ = run(centred(), effort=Effort(beam=4), iterations=20, tolerance=1.0)
    assert len(trained.losses) == 12


def test_joint_start_beats_identity_on_pairs():
    joint, _ = run(centred(), iterations=1)
    identity, _ = run(centred(), iterations=1, start="identity")
    assert joint.losses[0] < identity.losses[0]


def test_initial_mappings_are_orthonormal_for_any_overlap():
    for missing in (0.0, 0.5, 0.9):
        x = centred(n=60, dims=(12, 8, 9), missing=missing)
        for r in initial_mappings(Objects(InMemory(x), dict.fromkeys(x, 1.0)), 5, "joint").values():
            assert np.allclose(r.T @ r, np.eye(5), atol=1e-4)


def test_fuse_is_the_weighted_mean_of_what_is_present():
    x = check_features({"a": np.array([[1.0], [np.nan], [2.0]]), "b": np.array([[5.0], [3.0], [np.nan]])})
    z, w = fuse(x.arrays, x, {"a": 1.0, "b": 3.0})
    assert z[:, 0].tolist() == [4.0, 3.0, 2.0]
    assert w.tolist() == [4.0, 3.0, 1.0]


def test_procrustes_beats_nearby_rotations():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((100, 6)), rng.standard_normal((100, 3))
    best = procrustes(x.T @ y).astype(np.float64)
    assert np.allclose(best.T @ best, np.eye(3), atol=1e-6)
    for _ in range(20):
        other, _ = np.linalg.qr(best + 0.05 * rng.standard_normal(best.shape))
        assert np.square(x - y @ best.T).sum() <= np.square(x - y @ other.T).sum() + 1e-6


def test_ridge_solves_its_normal_equations():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((100, 6)), rng.standard_normal((100, 3))
    gram, cross = x.T @ x, x.T @ y
    w = ridge(gram, cross, 0.5).astype(np.float64)
    assert np.allclose((gram + 0.5 * np.trace(gram) / 6 * np.eye(6)) @ w, cross, atol=1e-4)
    assert (ridge(np.zeros((2, 2)), np.zeros((2, 1)), 0.1) == 0).all()
