import numpy as np
import pytest

from ccq_core import CCQ
from ccq_core.errors import InvalidInputError
from ccq_core.features import check_features
from ccq_core.model import Modality
from ccq_core.preprocessing import FOURIER, array_shapes, check_steps, fit_preprocessing, output_dim
from ccq_core.source import InMemory


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((500, 6)) @ rng.standard_normal((6, 6)) + 3).astype(np.float32)


def fit(steps, x, rows=1000):
    features = check_features({"x": x})
    return fit_preprocessing({"x": check_steps(steps)}, InMemory(features, rows), 0)[0]["x"]


def apply(steps, x):
    return fit(steps, x).apply(x)


@pytest.mark.parametrize("steps", ["zca,unit", "zscore,unit", "l2,center,unit", "sqrt,zca,zscore", "zca,rff,center"])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_batches_fit_the_same_steps(x, steps, far):
    whole, parts = fit(steps, x + far), fit(steps, x + far, rows=7)
    assert np.allclose(parts.apply(x + far), whole.apply(x + far), atol=1e-3)


@pytest.mark.parametrize(
    "steps",
    ["zca,unit", "l2,zca", "zca,unit,unit", "zscore,unit", "zca,zscore", "zca,unit,zca", "rff,zca,unit", "zca,rff", ""],
)
def test_a_split_pipeline_does_the_same(x, steps):
    fitted = fit(steps, x)
    cheap, matrix = fitted.split()
    assert (matrix is None) == (steps in ("zscore,unit", "zca,zscore", "zca,rff", ""))
    assert np.allclose(cheap.apply(x) if matrix is None else cheap.apply(x) @ matrix, fitted.apply(x), atol=1e-4)


@pytest.mark.parametrize("steps", ["l2,sqrt,zca,unit", "zscore,rff", "center,unit,zca", ""])
@pytest.mark.parametrize("dim", [6, 100])
def test_each_row_is_mapped_as_it_is_alone(steps, dim):
    """To the last bit, which a matrix library does not promise: it sums more rows in another order."""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((300, dim)) * 3 + 1).astype(np.float32)
    fitted = fit(steps, x)
    mapping = rng.standard_normal((fitted.apply(x[:1]).shape[1], 32)).astype(np.float32)
    modality = Modality(dim, 1.0, fitted, mapping)
    alone = np.concatenate([modality.map(x[i : i + 1], alone=False) for i in range(len(x))])
    for rows in (1, 2, 31, 300):
        assert modality.map(x[:rows], alone=True).tobytes() == alone[:rows].tobytes()
    assert modality.map(x[:0], alone=True).shape == (0, 32)
    assert np.allclose(modality.map(x, alone=False), alone, atol=1e-4)


def test_checked_features_are_projected_as_those_that_are_not():
    rng = np.random.default_rng(2)
    given = {name: rng.standard_normal((60, dim)).astype(np.float32) for name, dim in (("image", 12), ("text", 9))}
    model = CCQ(bits=16, iterations=2, seed=0).fit(given)
    given["text"][::3] = np.nan
    for alone in (False, True):
        want = model.project(given, alone=alone)
        assert model.project(check_features(given), alone=alone).tobytes() == want.tobytes()
    assert model.project({"image": given["image"][::3]}, alone=True).tobytes() == want[::3].tobytes()


def test_zscore(x):
    y = apply("zscore", x)
    assert np.allclose(y.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(y.std(axis=0), 1, atol=1e-4)


def test_zscore_makes_constant_dimensions_zero(x):
    x[:, 2] = 1e6
    assert (apply("zscore", x)[:, 2] == 0).all()


def test_center_l2_sqrt_unit(x):
    assert np.allclose(apply("center", x).mean(axis=0), 0, atol=1e-5)
    assert np.allclose(np.linalg.norm(apply("l2", x), axis=1), 1, atol=1e-6)
    assert np.allclose(apply("sqrt", x), np.sign(x) * np.abs(x) ** 0.5)
    assert np.isclose(np.square(apply("center,unit", x)).sum(axis=1).mean(), 1, atol=1e-5)


def test_l2_keeps_zero_rows(x):
    x[3] = 0
    assert (apply("l2", x)[3] == 0).all()


def test_zca_shrinks_towards_white_without_rotation(x):
    y = apply("zca", x).astype(np.float64)
    centred = (x - x.mean(axis=0)).astype(np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
    expected = values / (values + values.mean())  # ridge of one mean eigenvalue
    assert np.allclose(vectors.T @ (y.T @ y / len(x)) @ vectors, np.diag(expected), atol=1e-4)


def test_zca_of_rank_deficient_and_constant_features_is_finite():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(5), size=100).astype(np.float32)  # rows sum to one
    assert np.isfinite(apply("zca,unit", rows)).all()
    assert (apply("zca,unit", np.ones((10, 3), np.float32)) == 0).all()


def test_steps_chain_in_order(x):
    fitted = fit("l2,center,unit", x)
    y = x / np.linalg.norm(x, axis=1, keepdims=True)
    y = y - y.mean(axis=0)
    y = y / np.sqrt(np.square(y).sum(axis=1).mean())
    assert np.allclose(fitted.apply(x), y, atol=1e-5)
    for step, arrays in zip(fitted.steps, fitted.arrays, strict=True):
        assert {name: array.shape for name, array in arrays.items()} == array_shapes(step, 6)
        assert all(array.dtype == np.float32 for array in arrays.values())


def test_step_names():
    assert check_steps(" zscore , unit ") == ("zscore", "unit")
    assert check_steps("none") == ()
    assert check_steps(["l2"]) == ("l2",)
    with pytest.raises(InvalidInputError, match=r"'whiten'; known are none, l2"):
        check_steps("whiten")


@pytest.mark.parametrize("steps", [None, 3, b"zca", [["zca"]], [None], {"zca"}, "l2," * 17, "x" * 1000])
def test_steps_that_are_no_names(steps):
    with pytest.raises(InvalidInputError, match="preprocess: ") as caught:
        check_steps(steps)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("magnitude", [1e-20, 1e-29, 1e-38, 1e-45, 0])
@pytest.mark.parametrize("steps", ["zca", "zscore", "unit", "zca,unit", "l2,zca", "sqrt,zscore"])
def test_tiny_features_are_scaled_or_constant(x, steps, magnitude):
    with np.errstate(all="raise", under="ignore"):
        y = apply(steps, (x * magnitude).astype(np.float32))
    assert np.abs(y).max() < 100
    assert magnitude < 1e-20 or np.abs(y).max() > 0.1


@pytest.mark.parametrize("steps", ["zca,unit", "zscore,unit", "l2,zca", "zca,zscore", "center"])
def test_sums_that_follow_are_those_of_what_comes_out(x, steps):
    far = x * np.float32(0.05) + np.float32(1e3)  # so that float32 rounds the mean
    features = check_features({"x": far})
    fitted, grams = fit_preprocessing({"x": check_steps(steps)}, InMemory(features), 0)
    y = fitted["x"].apply(far).astype(np.float64)
    assert ("x" in grams) == ("zca" in steps)
    if grams:
        assert np.allclose(grams["x"], y.T @ y, rtol=1e-2, atol=1e-3 * np.trace(y.T @ y))


def test_fourier_features_come_near_the_gaussian_kernel(x):
    y = apply("rff", x)
    assert y.shape == (500, FOURIER)
    assert y.dtype == np.float32
    apart = np.square(x[:, None] - x).sum(axis=2)
    kernel = np.exp(-apart / (2 * x.var(axis=0).sum()))
    assert np.sqrt(np.square(y @ y.T - kernel).mean()) < 1.5 / np.sqrt(FOURIER)


def test_fourier_features_are_seeded_by_modality_and_model(x):
    features = check_features({"a": x, "b": x})
    waves = [
        fitted.arrays[0]["waves"]
        for seed in (0, 0, 1)
        for fitted in fit_preprocessing({"a": ["rff"], "b": ["rff"]}, InMemory(features), seed)[0].values()
    ]
    assert np.array_equal(waves[0], waves[2])
    assert not np.array_equal(waves[0], waves[1])
    assert not np.array_equal(waves[0], waves[4])


def test_fourier_features_of_constants_are_constant():
    y = apply("rff", np.ones((10, 3), np.float32))
    assert np.isfinite(y).all()
    assert (y == y[0]).all()


def test_arrays_of_steps_behind_fourier_features_have_their_dimension(x):
    fitted = fit("center,rff,zca,unit", x)
    dim = 6
    for step, arrays in zip(fitted.steps, fitted.arrays, strict=True):
        assert {name: array.shape for name, array in arrays.items()} == array_shapes(step, dim)
        dim = output_dim([step], dim)
    assert dim == FOURIER
