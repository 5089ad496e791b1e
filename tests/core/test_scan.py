"""Distances and the scan against the formulas written out."""

import numpy as np
import pytest

from ccq_core.distances import TableMaker
from ccq_core.errors import InvalidInputError
from ccq_core.scan import scan, top_k
from tests.core.conftest import make_pairs


@pytest.fixture(scope="module")
def queries(model):
    return model.project({"image": make_pairs(7, seed=5)["image"]})


def test_euclidean_is_the_aqd_of_the_paper(model, pairs, queries):
    codes = model.encode(pairs)
    tables = model.distance_tables_latent(queries, metric="euclidean")
    y = model.decode(codes).astype(np.float64)
    norms = model.norm_levels_[codes[:, -1]].astype(np.float64)
    for q, z in enumerate(queries.astype(np.float64)):
        expected = z @ z - 2 * y @ z + norms
        assert np.allclose(tables.square_norm[q] + scan(tables, q, codes), expected, atol=1e-5)


def test_cosine_with_quantized_norm(model, pairs, queries):
    codes = model.encode(pairs)
    tables = model.distance_tables_latent(queries, metric="cosine")
    y = model.decode(codes).astype(np.float64)
    norms = np.sqrt(model.norm_levels_[codes[:, -1]].astype(np.float64))
    for q, z in enumerate(queries.astype(np.float64)):
        assert np.allclose(scan(tables, q, codes), -(y @ z) / np.linalg.norm(z) / norms, atol=1e-6)


def test_norm_byte_changes_distances_only_a_little(model, pairs, queries):
    codes = model.encode(pairs)
    y = model.decode(codes).astype(np.float64)
    tables = model.distance_tables_latent(queries, metric="euclidean")
    distances = tables.distances(np.stack([scan(tables, q, codes) for q in range(len(queries))]))
    exact = np.square(queries[:, None].astype(np.float64) - y[None]).sum(axis=2)
    assert np.abs(distances - exact).mean() < 0.003 * exact.mean()


def test_the_error_bound_of_theorem_1(model, pairs, queries):
    """|d(q, x) - d(q, y)| is at most the reconstruction error of x."""
    z = model.project(pairs).astype(np.float64)
    y = model.decode(model.encode(pairs)).astype(np.float64)
    error = np.linalg.norm(z - y, axis=1)
    for query in queries.astype(np.float64):
        gap = np.abs(np.linalg.norm(query - z, axis=1) - np.linalg.norm(query - y, axis=1))
        assert (gap <= error + 1e-9).all()


def test_zero_vectors_do_not_divide_by_zero():
    codebooks = np.zeros((2, 256, 3), np.float32)
    levels = np.zeros(256, np.float32)
    for metric, distance in (("cosine", 1.0), ("euclidean", 0.0)):
        tables = TableMaker(codebooks, levels)(np.zeros((1, 3), np.float32), metric)
        keys = scan(tables, 0, np.zeros((4, 3), np.uint8))
        assert tables.distances(keys[None]).tolist() == [[distance] * 4]


def test_unknown_metric(model, queries):
    from ccq_core.distances import check_metric

    with pytest.raises(InvalidInputError, match="cosine or euclidean, got 'dot'"):
        check_metric("dot")


@pytest.mark.parametrize("k", [0, 1, 2, 9, 10, 11, 100])
def test_top_k_breaks_ties_by_position(k):
    keys = np.random.default_rng(0).integers(0, 4, 10).astype(float)
    expected = sorted(range(10), key=lambda i: (keys[i], i))[:k]
    assert top_k(keys, k).tolist() == expected
    assert top_k(np.zeros(10), k).tolist() == list(range(10))[:k]
