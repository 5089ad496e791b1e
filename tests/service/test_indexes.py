"""Indexes on payload keys: filters mean the same with and without them, whatever is written, and read less."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.candidates import candidates
from service.filters import compile_filter
from service.schemas.filters import Filter
from service.store.interface import NewItem
from service.store.snapshot import SQLiteSnapshot
from service.store.sqlite import SQLiteStore
from tests.service.harness import assert_problem, features, item
from tests.service.test_filters import KEYS, filters, matches, payloads

EDGES = [2**63 - 1, 2**63, 2.0**63, 2**64 - 1, 2.0**64, 1.8e19, -(2**63), 1e300, "x" * 128, "x" * 129, "é" * 65]
edges = st.sampled_from(EDGES)
edge_filters = st.builds(
    lambda clause, conditions: {clause: conditions},
    st.sampled_from(["must", "should", "must_not"]),
    st.lists(
        st.one_of(
            st.builds(lambda v: {"key": "a", "match": {"value": v}}, edges),
            st.builds(
                lambda v: {"key": "a", "range": v},
                st.dictionaries(
                    st.sampled_from(["gt", "gte", "lt", "lte"]),
                    st.sampled_from([edge for edge in EDGES if not isinstance(edge, str)]),
                    min_size=1,
                    max_size=2,
                ),
            ),
        ),
        min_size=1,
        max_size=2,
    ),
)
some_payloads = payloads | st.builds(lambda v: {"a": v}, edges | st.lists(edges, max_size=3))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = SQLiteStore(tmp_path_factory.mktemp("data"))
    store.put_model("m", b"model")
    yield store
    store.close()


def quiet(_change):
    """Publishes nothing."""


def upsert(store, record, items):
    new = [NewItem(item_id, None if payload is None else orjson.dumps(payload)) for item_id, payload in items]
    store.upsert(record, new, b"12" * len(new), quiet)


def test_a_collection_is_made_together_with_its_indexes(store):
    """By one write: a kill in between would leave a collection that nobody asked for."""
    record, _ = store.create_collection("both", "m", ["b", "a"])
    assert store.indexed_keys(record) == ["a", "b"]
    assert store.create_collection("both", "m", ["c"]) == (record, False)
    assert store.indexed_keys(record) == ["a", "b"]
    store.drop_collection(record)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(some_payloads, min_size=1, max_size=8),
    st.lists(some_payloads, max_size=4),
    st.lists(st.sampled_from(KEYS), max_size=3, unique=True),
    st.lists(st.sampled_from(KEYS), max_size=3, unique=True),
    st.lists(filters | edge_filters, min_size=1, max_size=5),
)
def test_filters_mean_the_same_with_indexes(store, first, second, before, after, wanted):
    record, _ = store.create_collection("c", "m")
    try:
        store.index_keys(record, before)
        expected = dict(zip("xyzuvwst", first, strict=False))
        upsert(store, record, expected.items())
        replaced = dict(zip("yxpz", second, strict=False))
        if replaced:
            upsert(store, record, replaced.items())
        store.delete_ids(record, ["z", "nobody"], quiet)
        expected = {**expected, **replaced}
        expected.pop("z", None)
        store.index_keys(record, after)
        assert store.indexed_keys(record) == sorted(after)
        with store.snapshot(record) as snapshot:
            names = {seq: name for seq, name, _ in snapshot.scan(payloads=False)}
            for body in wanted:
                given_filter = Filter.model_validate(body)
                predicate = compile_filter(given_filter, orjson.dumps({"filter": body}))
                right = {name for name, payload in expected.items() if matches(body, name, payload)}
                seqs = predicate.seqs(snapshot)
                assert (seqs[1:] > seqs[:-1]).all()
                assert {names[seq] for seq in seqs.tolist()} == right, body
                found = candidates(given_filter, snapshot)
                if found is not None:
                    assert right <= {names[seq] for seq in found.seqs.tolist()}
                    assert not found.exact or right == {names[seq] for seq in found.seqs.tolist()}
    finally:
        store.drop_collection(record)


def indexed(service, *keys):
    return service.put("/collections/default", {"model": "tiny", "indexes": list(keys)})


def test_a_filter_on_indexed_keys_reads_no_other_payloads(filled, monkeypatch):
    def refuse(*_):
        raise AssertionError("all payloads are read")

    assert indexed(filled, "n", "even").status_code == 200
    monkeypatch.setattr(SQLiteSnapshot, "scan", refuse)
    search = {"query": features(3, "image"), "database": ["image", "text"], "limit": 60}
    for given_filter, expected in (
        ({"must": [{"key": "n", "match": {"any": [3, 5, 99]}}]}, {3, 5}),
        ({"must": [{"key": "n", "range": {"gte": 10, "lt": 20}}, {"key": "even", "match": {"value": True}}]},
         {10, 12, 14, 16, 18}),
        ({"should": [{"ids": ["item-1"]}, {"key": "n", "range": {"gt": 57}}],
          "must_not": [{"key": "n", "match": {"value": 58}}]}, {1, 59}),
        ({"must": [{"key": "n", "range": {"lt": 3}}, {"key": "unknown", "exists": False}]}, {0, 1, 2}),
    ):  # fmt: skip
        hits = filled.ok("POST", "/search", {**search, "filter": given_filter})["results"]
        assert {hit["payload"]["n"] for hit in hits} == expected, given_filter


def test_indexes_follow_writes_and_restarts(filled):
    assert indexed(filled, "n").json()["indexes"] == ["n"]
    filled.ok("POST", "/index", {"items": [item(3, m=1), item(99)]})
    filled.ok("POST", "/items/delete", {"filter": {"must": [{"key": "n", "range": {"gte": 5, "lt": 99}}]}})
    filled.restart()
    info = filled.ok("GET", "/collections/default")
    assert (info["indexes"], info["items"]) == (["n"], 6)
    hits = filled.ok(
        "POST", "/search",
        {"query": features(3), "database": ["image", "text"], "limit": 60,
         "filter": {"must": [{"key": "n", "match": {"any": list(range(100))}}]}},
    )["results"]  # fmt: skip
    assert {hit["payload"]["n"] for hit in hits} == {0, 1, 2, 3, 4, 99}


def test_indexes_stay_unless_others_are_asked_for(filled):
    indexed(filled, "b", "a", "a")
    filled.create()
    assert filled.ok("GET", "/collections/default")["indexes"] == ["a", "b"]
    assert indexed(filled, "c").json()["indexes"] == ["c"]
    assert indexed(filled).json()["indexes"] == []


@pytest.mark.parametrize("keys", [[""], "a", [1], ["x" * 1001], ["a"] * 65, [None]])
def test_bad_indexes_are_refused(filled, keys):
    problem = assert_problem(
        filled.put("/collections/default", {"model": "tiny", "indexes": keys}), 422, "invalid_request"
    )
    assert problem["errors"][0]["pointer"].startswith("#/indexes")
    assert filled.ok("GET", "/collections/default")["indexes"] == []


def test_an_item_with_a_damaged_payload_can_be_replaced(filled):
    indexed(filled, "n")
    store = filled.app.state.runtime.store
    store._writer.run(lambda db: db.execute("UPDATE items_1 SET payload = x'7b' WHERE id = 'item-7'"))
    filled.ok("POST", "/index", {"items": [item(7, "image")]})
    by_number = {"must": [{"key": "n", "match": {"value": 7}}]}
    hits = filled.ok("POST", "/search", {"query": features(7), "database": "image", "filter": by_number})["results"]
    assert [hit["id"] for hit in hits] == ["item-7"]


def test_a_key_cannot_be_indexed_while_a_payload_is_damaged(filled):
    store = filled.app.state.runtime.store
    store._writer.run(lambda db: db.execute("UPDATE items_1 SET payload = x'7b' WHERE id = 'item-7'"))
    problem = assert_problem(indexed(filled, "n"), 500, "storage_error")
    assert "item-7" in problem["detail"]
    assert filled.ok("GET", "/collections/default")["indexes"] == []
