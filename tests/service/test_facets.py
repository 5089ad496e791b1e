"""Facets: counts of values, against counting by hand."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.schemas.facets import FacetReply
from service.store.snapshot import SQLiteSnapshot
from tests.service.harness import InProcess, assert_problem, features
from tests.service.plain import damage
from tests.service.test_filters import elements, payloads, reach

PATHS = ["a", "b", "a.b", "b.a", "c"]


def put(service, given, name="default"):
    """Index items p0, p1, ... with these payloads and no others, in this order."""
    service.ok("POST", f"/collections/{name}/items/delete", {"filter": {"must_not": [{"ids": ["nobody"]}]}})
    items = [{"id": f"p{i}", "features": features(i), "payload": payload} for i, payload in enumerate(given)]
    service.ok("POST", f"/collections/{name}/index", {"items": items})


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = InProcess(tmp_path_factory.mktemp("facets") / "data", max_facet_values=1000)
    service.create()
    yield service
    service.close()


def facets(service, key, **rest):
    reply = service.ok("POST", "/facets", {"key": key, **rest})
    FacetReply.model_validate(reply)
    assert set(reply) == {"values", "total", "missing", "took_ms"}
    return [(entry["value"], entry["count"]) for entry in reply["values"]], reply["total"], reply["missing"]


def test_values_are_counted_once_an_item(service):
    put(
        service,
        [{"t": ["x", "y", "x", ["y", "z"]]}, {"t": "x"}, {"t": []}, {"t": {"x": 1}}, {}, None, {"t": [{}, "y"]}],
    )
    assert facets(service, "t") == ([("x", 2), ("y", 2), ("z", 1)], 7, 4)
    assert facets(service, "t", limit=1) == ([("x", 2)], 7, 4)
    assert facets(service, "t.x") == ([(1, 1)], 7, 6)
    assert facets(service, "nothing") == ([], 7, 7)


def test_equal_counts_come_in_the_order_of_values(service):
    put(service, [{"v": v} for v in ("é", "b", "", "B", 10, 9, -1, 0.5, True, False, None, "10", 2**64 - 1, "🐈", "z")])
    found, *_ = facets(service, "v", limit=100)
    expected = [None, False, True, -1, 0.5, 9, 10, 2**64 - 1, "", "10", "B", "b", "z", "é", "🐈"]
    assert [(repr(value), count) for value, count in found] == [(repr(value), 1) for value in expected]


def test_values_are_equal_as_in_filters(service):
    put(service, [{"v": 1}, {"v": 1.0}, {"v": True}, {"v": "1"}, {"v": [1, 1.0, True]}, {"v": 0}, {"v": -0.0}])
    assert facets(service, "v") == ([(1, 3), (True, 2), (0, 2), ("1", 1)], 7, 0)
    for value, count in facets(service, "v")[0]:
        condition = {"must": [{"key": "v", "match": {"value": value}}]}
        assert len(service.ok("POST", "/search", {"query": features(0), "filter": condition})["results"]) == count


def test_of_equal_numbers_the_first_is_shown(service):
    put(service, [{"v": [1.0, 1]}, {"v": 1}, {"v": [2, 2.0]}])
    assert repr(facets(service, "v")[0]) == "[(1.0, 2), (2, 1)]"


def test_only_the_items_that_match(service):
    put(service, [{"v": i % 3, "n": i} if i % 4 else {"n": i} for i in range(30)])
    condition = {"must": [{"key": "n", "range": {"gte": 10, "lt": 20}}]}
    counts = Counter(i % 3 for i in range(10, 20) if i % 4)
    assert facets(service, "v", filter=condition) == (sorted(counts.items(), key=lambda e: (-e[1], e[0])), 10, 2)
    assert facets(service, "v", filter={"must": [{"ids": ["p1", "nobody"]}]}) == ([(1, 1)], 1, 0)
    assert facets(service, "v", filter={"must": [{"ids": []}]}) == ([], 0, 0)


def test_a_collection_without_items(bare):
    bare.create()
    assert facets(bare, "v") == ([], 0, 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(payloads, min_size=1, max_size=8), st.sampled_from(PATHS), st.integers(1, 5))
def test_random_payloads(service, given, key, limit):
    put(service, given)
    counts, missing = Counter(), 0
    for payload in given:
        leaves = [leaf for value in reach(payload, key.split(".")) for leaf in elements(value)]
        distinct = {(isinstance(leaf, bool), leaf) for leaf in leaves if not isinstance(leaf, dict)}
        counts.update(distinct)
        missing += not distinct
    found, total, without = facets(service, key, limit=1000)
    assert {(isinstance(value, bool), value): count for value, count in found} == counts
    assert [count for _, count in found] == sorted(counts.values(), reverse=True)
    assert (total, without) == (len(given), missing)
    assert facets(service, key, limit=limit)[0] == found[:limit]


def test_more_distinct_values_than_are_counted_are_refused(service):
    put(service, [{"v": list(range(500)), "w": 1}, {"v": list(range(400, 1000)), "w": 2}, {"v": 1000, "w": 3}])
    problem = assert_problem(service.post("/facets", {"key": "v"}), 422, "too_many_values")
    assert problem["detail"].startswith("key: expected at most 1000 distinct values, ")
    assert problem["errors"][0]["pointer"] == "#/key"
    assert facets(service, "v", limit=1, filter={"must": [{"key": "w", "range": {"lt": 3}}]}) == ([(400, 2)], 2, 0)


def test_long_values_are_refused_before_they_fill_memory(tmp_path, monkeypatch):
    service = InProcess(tmp_path / "data", max_reply_bytes=10_000)
    try:
        service.create()
        put(service, [{"v": str(i) * 1000} for i in range(10)] + [{"v": "end"}] * 5)
        read = []
        scan = SQLiteSnapshot.scan
        monkeypatch.setattr(SQLiteSnapshot, "scan", lambda *rest: (read.append(1) or row for row in scan(*rest)))
        assert_problem(service.post("/facets", {"key": "v"}), 422, "too_many_values")
        assert len(read) == 10
        fewer = {"must_not": [{"ids": ["p0", "p2"]}]}
        assert facets(service, "v", filter=fewer, limit=2)[0] == [("end", 5), ("1" * 1000, 1)]
    finally:
        service.close()


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({}, "#/key", "key: missing"),
        ({"key": ""}, "#/key", "key: string should have at least 1 character"),
        ({"key": "x" * 1001}, "#/key", "key: string should have at most 1000 characters"),
        ({"key": ["a"]}, "#/key", "key: expected a string"),
        ({"key": "a", "limit": 0}, "#/limit", "limit: "),
        ({"key": "a", "limit": 10_001}, "#/limit", "limit: expected at most 10000, got 10001"),
        ({"key": "a", "limit": 10**19}, "#/limit", "limit: "),
        ({"key": "a", "filter": []}, "#/filter", "filter: expected an object"),
        ({"key": "a", "filter": {"must": [{"key": "a"}]}}, "#/filter/must/0", "filter.must[0]: expected"),
        ({"key": "a", "query": {}}, "#/query", "query: unknown key"),
    ],
)
def test_what_makes_no_sense(service, body, pointer, words):
    problem = assert_problem(service.post("/facets", body), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["detail"].startswith(words)


def test_other_collections_and_damaged_payloads(service, monkeypatch):
    service.create("other")
    put(service, [{"v": 1}])
    put(service, [{"v": 2}], "other")
    assert service.ok("POST", "/collections/other/facets", {"key": "v"})["values"] == [{"value": 2, "count": 1}]
    assert_problem(service.post("/collections/nowhere/facets", {"key": "v"}), 404, "collection_not_found")
    damage(monkeypatch, "p0")
    assert "item 'p0'" in assert_problem(service.post("/facets", {"key": "v"}), 500, "storage_error")["detail"]
