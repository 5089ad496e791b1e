"""One request cannot take the server's time or memory: not by its faults, and not by its reply."""

import orjson
import pytest

from service.body import parse
from service.errors import InvalidRequestError
from service.schemas.facets import FacetRequest
from service.schemas.filters import MAX_CONDITIONS
from service.schemas.items import DeleteRequest, IndexRequest
from service.schemas.search import SearchRequest
from service.store.snapshot import SQLiteSnapshot
from tests.service.harness import InProcess, assert_problem, features, item

MANY = 50_000


def tree(depth):
    """A filter whose faults are so many as a list's, though no list in it is long."""
    return {clause: [tree(depth - 1) if depth else 1] for clause in ("must", "should", "must_not")}


FULL_OF_FAULTS = [
    (IndexRequest, {"items": [{}] * MANY}),
    (IndexRequest, {"items": [[]] * MANY}),
    (IndexRequest, {"items": [item(0)], **{f"k{i}": 0 for i in range(MANY)}}),
    (IndexRequest, {"items": [{**item(0), **{f"k{i}": 0 for i in range(MANY)}}]}),
    (SearchRequest, {"queries": [[]] * MANY}),
    (SearchRequest, {"query": {}, "database": [1] * MANY}),
    (SearchRequest, {"query_by": {"positive": [[]] * MANY, "negative": [{}] * MANY}}),
    (SearchRequest, {"query_by": {f"k{i}": 0 for i in range(MANY)}}),
    (SearchRequest, {"query": {}, "with_payload": [1] * 100, "database": "a"}),
    (SearchRequest, {"query": {}, "with_payload": [1] * MANY}),
    (FacetRequest, {"filter": {"must": [1] * MANY}}),
    (DeleteRequest, {"ids": [1.5] * MANY}),
    (DeleteRequest, {"filter": {"must": [{"ids": [1.5] * MANY}]}}),
    (DeleteRequest, {"filter": {"must": [{"key": "a", "match": {"any": [[]] * MANY}}]}}),
    (DeleteRequest, {"filter": {"must": [{"key": "a", "range": {f"k{i}": 0 for i in range(MANY)}}]}}),
    (DeleteRequest, {"filter": {f"k{i}": 0 for i in range(MANY)}}),
    (DeleteRequest, {"filter": {"must": [1] * MANY}}),
    (DeleteRequest, {"filter": {"should": ["x"] * (MAX_CONDITIONS // 2), "must_not": [{}] * MANY}}),
    (DeleteRequest, {"filter": tree(7)}),
]


@pytest.mark.parametrize(("schema", "body"), FULL_OF_FAULTS)
def test_a_body_full_of_faults_costs_no_more_than_one_with_a_few(schema, body):
    with pytest.raises(InvalidRequestError) as refused:
        parse(orjson.dumps(body), schema)
    assert 1 <= len(refused.value.faults) <= 5


def test_a_body_of_millions_of_lists_is_not_even_parsed(service):
    for lists in (b"[]", b"[{}]"):
        body = b'{"items":[' + lists + (b"," + lists) * (1 << 20) + b"]}"
        response = service.request("POST", "/index", content=body, headers={"Content-Type": "application/json"})
        assert "at most 1048576 brackets" in assert_problem(response, 413, "body_too_large")["detail"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/index", {"items": [[]] * 11}, "items: expected at most 10 items, got 11"),
        ("/search", {"queries": [[]] * 6}, "queries: expected at most 5 queries, got 6"),
        ("/items/delete", {"ids": [1.5] * 11}, "ids: expected at most 10 ids, got 11"),
    ],
)
def test_lengths_come_before_what_is_in_the_lists(tmp_path, path, body, words):
    service = InProcess(tmp_path, max_batch_items=10, max_batch_queries=5)
    try:
        service.create()
        assert assert_problem(service.post(path, body), 422, "invalid_request")["detail"] == words
    finally:
        service.close()


# -- replies ---------------------------------------------------------------------------------------------------------

REPLY_BYTES = 10_000


@pytest.fixture
def wordy(tmp_path):
    """Ten items of 1 kB each, and the last of 30 kB, where replies may have 10 kB."""
    service = InProcess(tmp_path / "data", max_reply_bytes=REPLY_BYTES)
    service.create()
    service.ok("POST", "/index", {"items": [item(i, text="x" * (30_000 if i == 10 else 1000)) for i in range(11)]})
    yield service
    service.close()


def test_a_search_with_too_long_a_reply_is_refused(wordy):
    nine = {"query_id": "item-0", "filter": {"must": [{"key": "n", "range": {"lt": 10}}]}}
    problem = assert_problem(wordy.post("/search", {**nine, "limit": 9}), 422, "reply_too_large")
    assert problem["detail"] == (
        "limit: expected results of at most 10000 bytes together, got more: ask for fewer, or for none of their "
        'payloads ("with_payload": false)'
    )
    assert problem["errors"][0]["pointer"] == "#/limit"
    assert len(wordy.ok("POST", "/search", {**nine, "limit": 8})["results"]) == 8
    assert len(wordy.ok("POST", "/search", {**nine, "limit": 9, "with_payload": False})["results"]) == 9


def test_a_payload_counts_as_often_as_it_is_found(wordy):
    nearest = {"query": features(0), "filter": {"must": [{"ids": ["item-1", "item-2"]}]}}
    assert len(wordy.ok("POST", "/search", nearest)["results"]) == 2
    several = {**nearest, "queries": [features(i) for i in range(5)]}
    del several["query"]
    assert_problem(wordy.post("/search", several), 422, "reply_too_large")
    assert len(wordy.ok("POST", "/search", {**several, "with_payload": False})["results"]) == 5


def test_what_is_too_long_is_not_even_read(wordy, monkeypatch):
    read = []
    original = SQLiteSnapshot.texts
    monkeypatch.setattr(SQLiteSnapshot, "texts", lambda *rest: (read.append(row[0]) or row for row in original(*rest)))
    assert_problem(wordy.post("/search", {"query_id": "item-0", "limit": 11}), 422, "reply_too_large")
    assert 1 <= len(read) <= 9


def test_a_listing_ends_its_page_early_and_goes_on(wordy):
    seen, query, sizes = [], {"limit": 100}, []
    while True:
        reply = wordy.get("/items", params=query)
        page = reply.json()
        seen += [found["id"] for found in page["items"]]
        sizes.append(len(page["items"]))
        assert len(reply.content) <= REPLY_BYTES + 200 or len(page["items"]) == 1
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == [f"item-{i}" for i in range(11)]
    assert sizes == [8, 2, 1]  # the one that is too long for any page has a page for itself


@pytest.mark.parametrize("damaged", [b'{"n":', b"\xff", b""])
def test_a_damaged_payload_is_a_problem_and_no_broken_json(filled, damaged):
    filled.app.state.runtime.store._writer.run(  # damage that the service itself cannot do
        lambda db: db.execute("UPDATE items_1 SET payload = ? WHERE id = 'item-7'", (damaged,))
    )
    by_payload = {"must": [{"key": "n", "range": {"lt": 9}}]}
    for response in (
        filled.get("/items/item-7"),
        filled.get("/items"),
        filled.post("/search", {"query": features(7), "database": "text", "limit": 60}),
        filled.post("/search", {"query": features(7), "filter": by_payload}),
        filled.post("/items/delete", {"filter": by_payload}),
    ):
        assert "item 'item-7'" in assert_problem(response, 500, "storage_error")["detail"]
    assert filled.get("/items", params={"limit": 7}).status_code == 200
    filled.ok("POST", "/index", {"items": [item(7)]})
    assert filled.get("/items").status_code == 200
