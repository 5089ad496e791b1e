import numpy as np
import pytest

from ccq_core import CodeIndex
from ccq_core.errors import InvalidInputError, UnknownIdError
from ccq_core.scan import scan
from tests.core.conftest import make_pairs


@pytest.fixture
def index(model, pairs):
    index = CodeIndex(model)
    index.add([f"p{i}" for i in range(600)], model.encode(pairs))
    return index


def brute_force(model, codes, queries, k, metric):
    tables = model.distance_tables(queries, metric=metric)
    keys = np.stack([scan(tables, q, codes) for q in range(len(tables))])
    order = np.argsort(keys, axis=1, kind="stable")[:, :k]
    return order, tables.distances(np.take_along_axis(keys, order, axis=1))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 10, 600, 1000])
def test_search_is_exact(index, model, pairs, metric, k):
    queries = {"text": make_pairs(9, seed=5)["text"]}
    hits = index.search(queries, k, metric=metric)
    order, distances = brute_force(model, model.encode(pairs), queries, k, metric)
    assert hits.ids.tolist() == [[f"p{i}" for i in row] for row in order]
    assert (hits.distances == distances).all()
    assert hits.distances.dtype == np.float32
    assert hits.ids.shape == (9, min(k, 600))


def test_fused_queries_find_their_own_pair(index, pairs):
    hits = index.search({name: array[:50] for name, array in pairs.items()}, 10)
    assert np.mean([f"p{i}" in row for i, row in enumerate(hits.ids)]) > 0.9


def test_replace_counts_as_newly_inserted(model, pairs):
    codes = model.encode({name: array[:1] for name, array in pairs.items()})
    index = CodeIndex(model)
    index.add(["a", "b", "c"], np.repeat(codes, 3, axis=0))
    query = {name: array[:1] for name, array in pairs.items()}
    assert index.search(query, 3).ids.tolist() == [["a", "b", "c"]]
    index.add(["a"], codes)
    assert index.search(query, 3).ids.tolist() == [["b", "c", "a"]]
    assert len(index) == 3


def test_delete(index, pairs):
    query = {name: array[:1] for name, array in pairs.items()}
    first = index.search(query, 1).ids[0, 0]
    index.delete([first, first])
    assert first not in index
    assert first not in index.search(query, 599).ids[0]
    assert len(index) == 599
    with pytest.raises(UnknownIdError, match=first):
        index.delete(["p5", first])
    assert "p5" in index
    with pytest.raises(KeyError):
        index.delete([first])


def test_refused_additions_change_nothing(index, model):
    for ids, codes in (
        (["x", "x"], np.zeros((2, 3), np.uint8)),
        (["x"], np.zeros((1, 4), np.uint8)),
        (["x"], np.zeros((1, 3), np.float32)),
        (["x", "y"], np.zeros((1, 3), np.uint8)),
    ):
        with pytest.raises(InvalidInputError):
            index.add(ids, codes)
    assert len(index) == 600
    assert "x" not in index
    index.add(["x"], np.zeros((1, 3), np.uint8))


def test_ids_keep_their_type(model, pairs):
    index = CodeIndex(model)
    index.add(np.arange(5), model.encode({n: a[:5] for n, a in pairs.items()}))
    hits = index.search({"image": pairs["image"][:1]}, 5)
    assert sorted(hits.ids[0]) == [0, 1, 2, 3, 4]
    assert all(type(item) is int for item in hits.ids[0])


def test_bad_k_and_empty_index(index, model, pairs):
    with pytest.raises(InvalidInputError, match="k: expected a whole number from 1 up, got 0"):
        index.search({"image": pairs["image"][:1]}, 0)
    assert CodeIndex(model).search({"image": pairs["image"][:2]}, 3).ids.shape == (2, 0)
    assert index.search({"image": np.empty((0, 12))}, 3).ids.shape == (0, 3)


@pytest.mark.parametrize("k", [2.5, 3.0, "3", None, True, [], np.array([3])])
def test_k_is_a_whole_number(index, pairs, k):
    with pytest.raises(InvalidInputError, match="k: expected a whole number"):
        index.search({"image": pairs["image"][:1]}, k)


def test_k_may_be_beyond_every_integer_type(index, pairs):
    assert index.search({"image": pairs["image"][:1]}, 10**30).ids.shape == (1, 600)
    assert index.search({"image": pairs["image"][:1]}, np.uint8(200)).ids.shape == (1, 200)


@pytest.mark.parametrize("ids", [[["a"]], [{}], np.array([["a", "b"]]), 5, None])
def test_ids_are_hashable(index, ids):
    with pytest.raises(InvalidInputError, match="ids: expected a sequence of hashable ids"):
        index.add(ids, np.zeros((1, 3), np.uint8))
    with pytest.raises(InvalidInputError, match="ids: expected a sequence of hashable ids"):
        index.delete(ids)
    assert len(index) == 600


@pytest.mark.parametrize("codes", [[[1, 2, 3], [1]], np.ma.masked_equal(np.zeros((2, 3), np.uint8), 0)])
def test_codes_that_are_no_array(index, model, codes):
    with pytest.raises(InvalidInputError, match="codes: expected a"):
        index.add(["x", "y"], codes)
    with pytest.raises(InvalidInputError, match="codes: expected a"):
        model.decode(codes)
