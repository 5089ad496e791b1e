import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccq_core import CCQ, CCQError, CodeIndex
from ccq_core.errors import FeatureError, InvalidInputError, NotFittedError, UnknownModalityError
from tests.core.conftest import make_pairs


def test_shapes_and_dtypes(model, pairs):
    codes = model.encode(pairs)
    assert codes.shape == (600, 3)
    assert codes.dtype == np.uint8
    assert model.code_width == 3
    assert model.modalities == ("image", "text")
    assert model.dims == {"image": 12, "text": 8}
    assert model.project(pairs).shape == (600, 8)
    assert model.decode(codes).shape == (600, 8)


def test_fit_returns_self_and_stores_only_parameters_before():
    model = CCQ(bits=8)
    assert model.fit(make_pairs(50)) is model


def test_use_before_fit():
    for use in (
        lambda m: m.encode({"image": np.ones((1, 2))}),
        lambda m: m.decode(np.zeros((1, 5), np.uint8)),
        lambda m: m.modalities,
        lambda m: m.code_width,
        lambda m: m.to_bytes(),
        lambda m: m.distance_tables({"image": np.ones((1, 2))}),
    ):
        with pytest.raises(NotFittedError, match="fit"):
            use(CCQ())


def test_reconstructions_are_near_the_latent_vectors(model, pairs):
    z = model.project(pairs)
    error = np.square(z - model.decode(model.encode(pairs))).sum() / np.square(z - z.mean(axis=0)).sum()
    assert error < 0.25


def test_same_object_in_two_modalities_gets_near_codes(model, pairs):
    """What the method is for: an image and its own text meet in the latent space."""
    held_out = make_pairs(200, seed=7)
    image, text = (model.project({name: held_out[name]}) for name in ("image", "text"))
    unit = [z / np.linalg.norm(z, axis=1, keepdims=True) for z in (image, text)]
    rank = (unit[0] @ unit[1].T).argsort(axis=1)[:, ::-1]
    found = (rank[:, :10] == np.arange(200)[:, None]).any(axis=1).mean()
    assert found > 0.6  # chance is .05


def test_norm_byte_is_the_nearest_level(model, pairs):
    codes = model.encode(pairs)
    norms = np.square(model.decode(codes).astype(np.float64)).sum(axis=1)
    chosen = model.norm_levels_[codes[:, -1]]
    assert (np.abs(chosen - norms) <= np.abs(model.norm_levels_[None] - norms[:, None]).min(axis=1) + 1e-5).all()


def test_rows_of_nan_are_single_modality_objects(model, pairs):
    mixed = {name: array[:10].copy() for name, array in pairs.items()}
    mixed["text"][3] = np.nan
    mixed["image"][5] = np.nan
    codes = model.encode(mixed)
    assert (codes[3] == model.encode({"image": pairs["image"][3:4]})[0]).all()
    assert (codes[5] == model.encode({"text": pairs["text"][5:6]})[0]).all()
    assert (codes[0] == model.encode({n: a[:1] for n, a in pairs.items()})[0]).all()


def test_empty_batches(model):
    assert model.encode({"image": np.empty((0, 12))}).shape == (0, 3)
    assert model.decode(np.empty((0, 3), np.uint8)).shape == (0, 8)


def test_chunking_does_not_show(model, monkeypatch):
    import ccq_core.model as module

    data = make_pairs(101, seed=4)
    whole = model.project(data)
    monkeypatch.setattr(module, "_CHUNK_ROWS", 7)
    assert np.allclose(model.project(data), whole, atol=1e-5)


@pytest.mark.parametrize("parts", [("image", "text"), ("image",), ("image", "text", "audio")])
def test_any_number_of_modalities(parts):
    data = {name: array for name, array in make_pairs(300, dims=(12, 8, 9)).items() if name in parts}
    model = CCQ(bits=16, weights={parts[-1]: 2.0}).fit(data)
    assert model.encode(data).shape == (300, 3)
    assert CCQ.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_semi_paired_and_missing_rows_train():
    data = make_pairs(300)
    data["image"][:100] = np.nan
    data["text"][200:] = np.nan
    model = CCQ(bits=16).fit(data)
    assert np.isfinite(model.losses_).all()
    assert model.encode(data).shape == (300, 3)


@pytest.mark.parametrize("n", [1, 2, 5, 255, 257])
def test_few_training_objects(n):
    data = make_pairs(n)
    model = CCQ(bits=16).fit(data)
    codes = model.encode(data)
    assert codes.shape == (n, 3)
    assert np.isfinite(model.decode(codes)).all()
    assert model.save is not None


def test_constant_features_train_to_something_finite():
    model = CCQ(bits=8).fit({"image": np.ones((20, 4)), "text": np.zeros((20, 3))})
    assert np.isfinite(model.decode(model.encode({"image": np.ones((1, 4))}))).all()


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not(pairs):
    first = CCQ(bits=16, seed=5).fit(pairs).to_bytes()
    assert CCQ(bits=16, seed=5).fit(pairs).to_bytes() == first
    assert CCQ(bits=16, seed=6).fit(pairs).to_bytes() != first


def test_another_process_trains_the_same_bytes(model):
    """Nothing depends on hash seeds, import order or object addresses."""
    script = (
        "import sys, hashlib; from tests.core.conftest import make_pairs; from ccq_core import CCQ;"
        "print(hashlib.sha256(CCQ(bits=16, seed=3).fit(make_pairs(600)).to_bytes()).hexdigest())"
    )
    import hashlib

    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == hashlib.sha256(model.to_bytes()).hexdigest()


def test_presets():
    paper = CCQ.preset("paper", bits=16)
    assert paper.metric == "euclidean"
    assert paper.weights == {"text": 5.0}
    assert CCQ.preset("default").bits == 32
    with pytest.raises(InvalidInputError, match="default or paper or angles"):
        CCQ.preset("best")


def test_a_latent_space_as_wide_as_the_features_allow(pairs, tmp_path):
    wide = CCQ(bits=8, dim="full", iterations=2).fit(pairs)
    assert wide.codebooks_.shape[2] == min(array.shape[1] for array in pairs.values())
    assert (
        wide.codebooks_.tobytes()
        == CCQ(bits=8, dim=wide.codebooks_.shape[2], iterations=2).fit(pairs).codebooks_.tobytes()
    )
    wide.save(tmp_path / "m.ccq")
    assert CCQ.load(tmp_path / "m.ccq").dim == "full"
    assert CCQ(bits=8, dim="full", preprocess="rff", iterations=1).fit(pairs).codebooks_.shape[2] == 512


def test_the_preset_for_angles_keeps_them(pairs):
    text = pairs["text"]  # it has fewer dimensions than images
    model = CCQ.preset("angles", bits=16, iterations=2).fit(pairs)
    z = model.project({"text": 3 * text})
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (z, text)]
    assert np.allclose(unit[0] @ unit[0].T, unit[1] @ unit[1].T, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bits": 12}, "bits: expected a multiple of 8"),
        ({"bits": "32"}, "bits: expected a whole number"),
        ({"bits": 32.0}, "bits: expected a whole number"),
        ({"bits": 0}, "bits"),
        ({"bits": 136}, "bits"),
        ({"dim": 0}, "dim: expected a whole number from 1 up, got 0"),
        ({"dim": 3.5}, "dim: expected a whole number"),
        ({"dim": 4.0}, "dim: expected a whole number"),
        ({"dim": "4"}, "dim: expected a whole number from 1 up, or 'full', got '4'"),
        ({"dim": True}, "dim: expected a whole number"),
        ({"dim": 9}, "dim: expected 1 to 8"),
        ({"weights": {"sound": 1.0}}, "'sound' is no modality"),
        ({"weights": {"text": 0.0}}, r"weights\['text'\]: expected a number from 1e-06 to 1e\+06, got 0.0"),
        ({"weights": {"text": float("nan")}}, "weights"),
        ({"weights": {"text": 1e308, "image": 1e308}}, "weights"),
        ({"weights": {"text": 5e-324}}, "weights"),
        ({"weights": {"text": 10**400}}, "weights"),
        ({"weights": {"text": 10**5000}}, "weights.*a huge number"),
        ({"weights": {"text": "1"}}, "weights"),
        ({"weights": {3: 1.0}}, "3 is no modality"),
        ({"weights": [1.0]}, "weights: expected numbers by modality"),
        ({"weights": "text"}, "weights: expected numbers by modality"),
        ({"metric": "hamming"}, "metric"),
        ({"metric": ["cosine"]}, "metric"),
        ({"metric": np.array(["cosine", "euclidean"])}, "metric"),
        ({"mapping": "cca"}, "mapping"),
        ({"mapping_ridge": 0.0}, "mapping_ridge"),
        ({"mapping_ridge": 10**400}, "mapping_ridge"),
        ({"mapping_ridge": np.nan}, "mapping_ridge"),
        ({"codebook_ridge": -1.0}, "codebook_ridge"),
        ({"codebook_ridge": 1e-300}, "codebook_ridge"),
        ({"codebook_ridge": "1"}, "codebook_ridge"),
        ({"tolerance": float("inf")}, "tolerance"),
        ({"tolerance": 10**400}, "tolerance"),
        ({"tolerance": None}, "tolerance"),
        ({"iterations": 0}, "iterations"),
        ({"effort": -1}, "effort"),
        ({"seed": -1}, "seed"),
        ({"start": "random"}, "start"),
        ({"preprocess": "whiten"}, "whiten"),
        ({"preprocess": None}, "preprocess: expected names of steps, got None"),
        ({"preprocess": [["zca"]]}, r"preprocess: unknown step \['zca'\]"),
        ({"preprocess": {"image": "zca", "text": 3}}, "preprocess: expected names of steps, got 3"),
        ({"preprocess": {"image": "zscore"}}, "no entry for modality 'text'"),
    ],
)
def test_bad_parameters_are_named_in_fit(changes, words, pairs):
    with pytest.raises(InvalidInputError, match=words):
        CCQ(**changes).fit(pairs)


def test_no_setting_is_bad_only_after_training(pairs):
    """NumPy's scalars, and the ends of every range: what can be trained with can be saved, and read again."""
    plain = {"bits": 16, "dim": 4, "seed": 7, "effort": 1, "iterations": 2, "mapping_ridge": 0.5, "tolerance": 0.25}
    scalars = {
        name: np.float32(value) if isinstance(value, float) else np.int64(value) for name, value in plain.items()
    }
    words = {"metric": np.str_("euclidean"), "preprocess": (np.str_("zscore"), "unit")}
    model = CCQ(**scalars, **words, weights={np.str_("text"): np.float32(2)}).fit(pairs)
    same = CCQ(**plain, metric="euclidean", preprocess="zscore,unit", weights={"text": 2.0}).fit(pairs)
    assert CCQ.from_bytes(model.to_bytes()).to_bytes() == same.to_bytes()
    model.tolerance = float("inf")
    with pytest.raises(InvalidInputError, match="tolerance"):
        model.to_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"codebook_ridge": 1e-9},
        {"codebook_ridge": 1e9},
        {"mapping_ridge": 1e-9},
        {"mapping_ridge": 1e9},
        {"weights": {"text": 1e-6, "image": 1e6}},
        {"tolerance": 0},
        {"tolerance": 1},
        {"seed": 2**64},
        {"effort": 0},
    ],
)
@pytest.mark.parametrize("steps", ["zca,unit", "none"])
def test_the_ends_of_every_range_train(changes, steps):
    for n in (3, 100):
        data = make_pairs(n)
        data["image"][:, 3] = data["image"][:, 2]  # a singular Gram matrix
        model = CCQ(bits=8, preprocess=steps, iterations=3, **changes).fit(data)
        assert np.isfinite(model.losses_).all()
        assert CCQ.from_bytes(model.to_bytes()).encode(data).shape == (n, 2)


@pytest.mark.parametrize("magnitude", [1e-44, 1e-38, 1e-30, 1e-20, 1e10, 5e13])
@pytest.mark.parametrize("steps", ["zca,unit", "zscore", "none", "l2", "center"])
def test_features_of_any_magnitude_train(magnitude, steps):
    data = make_pairs(60)
    data["image"] *= magnitude
    model = CCQ(bits=8, preprocess=steps, iterations=3).fit(data)
    assert np.isfinite(model.losses_).all()
    loaded = CCQ.from_bytes(model.to_bytes())
    assert (loaded.encode(data) == model.encode(data)).all()


def test_features_whose_codewords_no_file_could_hold_leave_the_model_as_it_was(pairs):
    model = CCQ(bits=8, preprocess="none").fit(pairs)
    before = model.to_bytes()
    with pytest.raises(InvalidInputError, match="'unit'"):
        model.fit({"image": np.full((50, 12), 1e15)})
    assert model.to_bytes() == before


def test_a_loaded_model_trains_on_other_modalities(pairs):
    loaded = CCQ.from_bytes(CCQ(bits=8, preprocess="center, unit").fit(pairs).to_bytes())
    assert loaded.preprocess == "center,unit"
    assert loaded.fit({"sound": pairs["image"]}).modalities == ("sound",)


def test_bad_modality_names(pairs):
    for name in ("pair", "", "a b", "ünï", "x" * 65):
        with pytest.raises(InvalidInputError, match="modality"):
            CCQ(bits=8).fit({name: pairs["image"]})


def test_a_modality_that_nobody_has(pairs):
    with pytest.raises(InvalidInputError, match="the arrays have no rows"):
        CCQ(bits=8).fit({"a": np.zeros((0, 3))})
    with pytest.raises(FeatureError, match="every row is NaN"):
        CCQ(bits=8).fit({"image": pairs["image"], "text": np.full((600, 8), np.nan)})


def test_bad_features_in_use(model):
    with pytest.raises(FeatureError, match="expected 12 numbers, got 5"):
        model.encode({"image": np.ones((1, 5))})
    with pytest.raises(UnknownModalityError, match="audio"):
        model.encode({"audio": np.ones((1, 5))})
    with pytest.raises(InvalidInputError, match="codes"):
        model.decode(np.zeros((2, 7), np.uint8))
    with pytest.raises(InvalidInputError, match="codes"):
        model.decode(np.zeros((2, 3), np.int64))


def test_huge_but_finite_features_never_become_nan(model):
    z = model.project({"image": np.full((1, 12), 1e12)})
    assert np.isfinite(z).all()
    with pytest.raises(FeatureError, match="1e15"):
        model.project({"image": np.full((1, 12), 1e20)})


def test_a_callback_that_raises_leaves_the_model_as_it_was(pairs):
    model = CCQ(bits=16, seed=3).fit(pairs)
    before = model.to_bytes()

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(make_pairs(100, seed=9), callback=stop)
    assert model.to_bytes() == before


def test_every_error_is_a_ccq_error():
    with pytest.raises(CCQError):
        CCQ().fit({})


def test_codes_without_norms_are_of_directions(pairs, tmp_path):
    model = CCQ(bits=32, norm="none").fit(pairs)
    codes = model.encode(pairs)
    assert codes.shape == (600, 4)
    assert model.code_width == 4
    assert (model.encode({"image": 100 * pairs["image"]}) == model.encode({"image": 100 * pairs["image"]})).all()
    y = model.decode(codes).astype(np.float64)
    lengths = np.linalg.norm(y, axis=1)
    assert abs(lengths.mean() - 1) < 0.05
    assert lengths.std() < 0.15
    z = model.project(pairs).astype(np.float64)
    cosines = np.einsum("nd,nd->n", z, y) / np.linalg.norm(z, axis=1) / lengths
    assert np.median(cosines) > 0.9

    index = CodeIndex(model)
    index.add(range(600), codes)
    query = {"text": pairs["text"][:20]}
    hits = index.search(query, k=7)
    q = model.project(query).astype(np.float64)
    inner = (q / np.linalg.norm(q, axis=1, keepdims=True)) @ y.T
    best = np.sort(inner, axis=1)[:, :-8:-1]
    assert np.allclose(hits.distances, np.clip(1 - best, 0, 2), atol=1e-5)

    model.save(tmp_path / "none.ccq")
    again = CCQ.load(tmp_path / "none.ccq")
    assert again.norm == "none"
    assert (again.encode(pairs) == codes).all()
    with pytest.raises(InvalidInputError, match="stores no norms"):
        index.search(query, k=7, metric="euclidean")
    with pytest.raises(InvalidInputError, match="ranked by cosine; got 16 bits and 'euclidean'"):
        CCQ(bits=16, norm="none", metric="euclidean").fit(pairs)
    with pytest.raises(InvalidInputError, match="got 8 bits"):
        CCQ(bits=8, norm="none").fit(pairs)
    with pytest.raises(InvalidInputError, match="norm: expected byte or none"):
        CCQ(norm="bit").fit(pairs)


def test_a_fitted_model_keeps_its_kind_of_codes(pairs):
    model = CCQ(bits=16, iterations=2).fit(pairs)
    before = model.to_bytes()
    model.norm = "none"
    assert model.encode(pairs).shape == (600, 3)
    assert model.to_bytes() == before
    with pytest.raises(InvalidInputError, match="cholesky"):
        CCQ(bits=16, norm="none", codebook_solver="cg").fit(pairs)


def test_codes_without_norms_train_in_batches(pairs):
    whole = CCQ(bits=16, norm="none", iterations=4).fit(pairs)
    parts = CCQ(bits=16, norm="none", iterations=4).fit(
        [{name: array[lo : lo + 250] for name, array in pairs.items()} for lo in (0, 250, 500)]
    )
    assert (whole.encode(pairs) == parts.encode(pairs)).mean() > 0.9


@pytest.fixture(scope="module")
def orthonormal():
    """A model that keeps the orthonormal R of training for all objects, as the theorem has it."""
    return CCQ(bits=16, mapping="procrustes", preprocess="center", dim=5).fit(make_pairs(600))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.sampled_from([0.0, 0.3, 1.0, 30.0]))
def test_quantized_distances_err_by_no_more_than_the_reconstruction(orthonormal, seed, scale):
    """Theorem 1: |d(q, x) - d(q, y)| <= |x - R y|, d in the latent space, for any query and any object."""
    rng = np.random.default_rng(seed)
    for name, modality in orthonormal.modalities_.items():
        query = rng.standard_normal((20, orthonormal.codebooks_.shape[2])) * scale
        raw = (make_pairs(20, seed=seed)[name] + scale * rng.standard_normal((20, modality.dim))).astype(np.float32)
        x = modality.preprocessing.apply(raw).astype(np.float64)
        latent = orthonormal.project({name: raw}).astype(np.float64)
        y = orthonormal.decode(orthonormal.encode({name: raw})).astype(np.float64)
        error = np.linalg.norm(x - y @ modality.mapping.T, axis=1)
        between = np.abs(np.linalg.norm(query - latent, axis=1) - np.linalg.norm(query - y, axis=1))
        assert (between <= error + 1e-4 * (1 + error)).all()
        assert np.allclose(modality.mapping.T @ modality.mapping, np.eye(latent.shape[1]), atol=1e-5)


def test_a_step_may_change_the_dimension(pairs, tmp_path):
    model = CCQ(bits=64, preprocess={"image": "zca,rff,center,unit", "text": "rff,zca,unit"}, iterations=3).fit(pairs)
    assert model.dims == {name: array.shape[1] for name, array in pairs.items()}
    assert model.codebooks_.shape[2] == 64  # more than the features have: D is of what comes out of the steps
    model.save(tmp_path / "m.ccq")
    loaded = CCQ.load(tmp_path / "m.ccq")
    assert loaded.to_bytes() == model.to_bytes()
    assert (loaded.encode(pairs) == model.encode(pairs)).all()
    with pytest.raises(InvalidInputError, match="dim: expected 1 to 512, the smallest feature dimension after prepro"):
        CCQ(bits=8, dim=513, preprocess="rff").fit(pairs)
    far = {name: np.full((1, dim), 1e15, np.float32) for name, dim in model.dims.items()}
    assert np.isfinite(model.project(far)).all()
