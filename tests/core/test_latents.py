"""Latent vectors in 16 bits a number: how they are rounded, and what they are ranked by."""

import numpy as np
import pytest

from ccq_core import simd
from ccq_core.latents import Latents

LEVELS = simd.levels()


@pytest.fixture(params=LEVELS)
def level(request):
    before = simd.get_level()
    simd.set_level(request.param)
    yield request.param
    simd.set_level(before)


@pytest.mark.parametrize("magnitude", [0.0, 1e-38, 1e-20, 1.0, 1e15])
def test_rounding_is_finer_than_what_is_kept(magnitude):
    z = (magnitude * np.random.default_rng(0).standard_normal((100, 16))).astype(np.float32)
    z[3] = 0
    rounded = Latents.of(z)
    again = rounded.numbers * rounded.scales[:, None].astype(np.float64)
    largest = np.abs(z).max(axis=1, keepdims=True)
    assert (np.abs(again - z) <= 0.51 / 32767 * largest + 5e-41).all()
    assert np.isfinite(rounded.scales).all()


@pytest.mark.parametrize("dim", [1, 7, 8, 16, 64, 101, 512])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_keys_are_those_of_the_vectors(dim, metric, level):
    rng = np.random.default_rng(dim)
    z, point = rng.standard_normal((50, dim)).astype(np.float32), rng.standard_normal(dim)
    z[7] = 0
    rows = rng.integers(0, 50, 80)
    keys = Latents.of(z).keys(rows, point, metric)
    if metric == "cosine":
        lengths = np.linalg.norm(z, axis=1) * np.linalg.norm(point)
        wanted = -np.divide(z @ point, lengths, out=np.zeros(50), where=lengths > 0)
    else:
        wanted = np.square(z - point).sum(axis=1)
    assert keys == pytest.approx(wanted[rows], rel=3e-4, abs=1e-4)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_every_level_gives_the_same_to_the_last_bit(metric):
    rng = np.random.default_rng(2)
    before, found = simd.get_level(), {}
    for dim in (*range(1, 20), 128, 200):
        latents = Latents.of(rng.standard_normal((30, dim)).astype(np.float32))
        point, rows = rng.standard_normal(dim), rng.permutation(30)
        try:
            for level in LEVELS:
                simd.set_level(level)
                found[level] = latents.keys(rows, point, metric)
                alone = [latents.keys(rows[i : i + 1], point, metric)[0] for i in range(30)]
                assert np.array_equal(found[level], alone), "whatever the other rows"
        finally:
            simd.set_level(before)
        assert all(np.array_equal(keys, found[simd.NUMPY]) for keys in found.values())


def test_of_nothing(level):
    nothing = np.zeros(0, dtype=np.int64)
    for metric in ("cosine", "euclidean"):
        assert Latents.of(np.zeros((0, 5), np.float32)).keys(nothing, np.ones(5), metric).shape == (0,)
        assert Latents.empty(3, 5).keys(np.arange(3), np.zeros(5), metric).tolist() == [0, 0, 0]


def test_rows_and_points_that_do_not_fit_are_refused():
    latents = Latents.empty(3, 5)
    for rows in ([3], [-1], [2**62]):
        with pytest.raises(ValueError, match="rows"):
            latents.keys(np.array(rows), np.ones(5), "cosine")
    with pytest.raises(ValueError, match="point"):
        latents.keys(np.arange(3), np.ones(4), "cosine")
