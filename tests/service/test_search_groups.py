"""Groups and parts of payloads in results, against the plain search."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.schemas.search import MAX_KEYS, SearchReply
from service.store.snapshot import SQLiteSnapshot
from tests.service.harness import InProcess, assert_problem, features, fill
from tests.service.plain import Plain, damage, fill_with_ties, groups, latents
from tests.service.test_search_pages import EVEN, databases, metrics, queries


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = InProcess(tmp_path_factory.mktemp("groups") / "data", max_results=500, max_limit=400)
    service.create()
    fill_with_ties(service, 240)
    yield service
    service.close()


@pytest.fixture(scope="module")
def plain(service):
    return Plain(service)


def search(service, body):
    reply = service.ok("POST", "/search", body)
    SearchReply.model_validate(reply)
    return reply


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_groups_are_those_of_the_plain_search(service, plain, data):
    query, names, metric = data.draw(queries), data.draw(databases), data.draw(metrics)
    key, even = data.draw(st.sampled_from(["tag", "even", "n", "none"])), data.draw(st.booleans())
    limit, size, offset = (data.draw(st.integers(*bounds)) for bounds in ((1, 30), (1, 12), (0, 5)))
    body = {"query": query, "database": names, "metric": metric, **({"filter": EVEN} if even else {})}
    body |= {"group_by": key, "group_size": size, "limit": limit, "offset": offset}
    holds = (lambda payload: payload["even"]) if even else (lambda _: True)
    hits = plain.search(latents(query), names, metric, holds=holds)
    threshold = data.draw(st.none() | st.sampled_from([hit["score"] for hit in hits]) | st.floats(-3, 1))
    if threshold is not None:
        body["score_threshold"] = threshold
        hits = [hit for hit in hits if hit["score"] >= threshold]
    want = groups(hits, key, size)[offset : offset + limit]
    reply = search(service, body)
    assert reply["results"] == want
    assert [type(group["key"]) for group in reply["results"]] == [type(group["key"]) for group in want]
    assert set(reply) == {"results", "took_ms"}


def test_no_more_is_read_than_it_takes(service, monkeypatch):
    read = []
    original = SQLiteSnapshot.texts
    monkeypatch.setattr(SQLiteSnapshot, "texts", lambda *rest: (read.append(row[0]) or row for row in original(*rest)))
    body = {"query": features(3), "database": "image", "with_payload": False}
    assert len(search(service, {**body, "group_by": "even", "limit": 2})["results"]) == 2
    assert len(read) < 80
    read.clear()
    assert len(search(service, {**body, "group_by": "even", "limit": 3})["results"]) == 2  # there are no three
    assert len(set(read)) == 160


def test_stored_items_and_examples_are_grouped_without_themselves(service, plain):
    for query in ({"query_id": "item-5"}, {"query_by": {"positive": ["item-5"]}}):
        reply = search(service, {**query, "group_by": "n", "limit": 300, "database": ["image", "pair"]})
        assert "item-5" not in {hit["id"] for group in reply["results"] for hit in group["hits"]}
        assert len(reply["results"]) == 159


def test_groups_have_parts_of_payloads(service):
    body = {"query": features(3), "database": "image", "group_by": "tag", "with_payload": ["n"]}
    for group in search(service, body)["results"]:
        assert [set(hit["payload"]) for hit in group["hits"]] == [{"n"}]
    for group in search(service, {**body, "with_payload": False})["results"]:
        assert [set(hit) for hit in group["hits"]] == [{"id", "database", "distance", "score"}]


def test_parts_of_payloads_in_lists_and_batches(service):
    body = {"database": "image", "limit": 5}
    whole = search(service, {**body, "queries": [features(1), features(2)]})["results"]
    cut = search(service, {**body, "queries": [features(1), features(2)], "with_payload": ["n", "x.y"]})["results"]
    assert cut == [[{**hit, "payload": {"n": hit["payload"]["n"]}} for hit in hits] for hits in whole]
    nothing = search(service, {**body, "query_id": "item-2", "with_payload": ["x"]})["results"]
    assert [hit["payload"] for hit in nothing] == [{}] * 5


def test_an_item_without_payload_has_no_parts(bare):
    bare.create()
    bare.ok("POST", "/index", {"items": [{"id": "a", "features": features(0)}]})
    body = {"query": features(0), "with_payload": ["n"]}
    assert [hit["payload"] for hit in search(bare, body)["results"]] == [None]
    assert search(bare, {**body, "group_by": "n"})["results"] == []
    assert search(bare, {**body, "group_by": "n", "database": "image", "metric": "euclidean"})["results"] == []


@pytest.mark.parametrize("given", [True, False, ["n"]])
def test_long_groups_are_refused(tmp_path, given):
    service = InProcess(tmp_path / "data", max_reply_bytes=10_000)
    try:
        service.create()
        items = [
            {
                "id": f"i{i}",
                "features": features(i),
                "payload": {"n": i, "v": [str(i) * 100, "x" * (i * 10)], "w": i % 2},
            }
            for i in range(80)
        ]
        service.ok("POST", "/index", {"items": items})
        body = {"query": features(0), "with_payload": given}
        by_v = assert_problem(service.post("/search", {**body, "group_by": "v", "limit": 100}), 422, "reply_too_large")
        assert by_v["errors"][0]["pointer"] == "#/group_by"
        many = {**body, "group_by": "w", "group_size": 40, "with_payload": True}
        by_w = assert_problem(service.post("/search", many), 422, "reply_too_large")
        assert by_w["errors"][0]["pointer"] == "#/limit"
        assert len(search(service, {**body, "group_by": "w", "group_size": 2})["results"]) == 2
    finally:
        service.close()


def test_parts_count_as_they_are_for_the_length_of_a_reply(tmp_path):
    service = InProcess(tmp_path / "data", max_reply_bytes=10_000)
    try:
        service.create()
        items = [{"id": f"i{i}", "features": features(i), "payload": {"n": i, "v": "x" * 2000}} for i in range(20)]
        service.ok("POST", "/index", {"items": items})
        body = {"query": features(0), "limit": 20}
        assert_problem(service.post("/search", body), 422, "reply_too_large")
        assert_problem(service.post("/search", {**body, "with_payload": ["v"]}), 422, "reply_too_large")
        assert len(search(service, {**body, "with_payload": ["n"]})["results"]) == 20
    finally:
        service.close()


def test_a_damaged_payload_is_a_problem(bare, monkeypatch):
    bare.create()
    fill(bare)
    damage(monkeypatch, "item-6")
    body = {"query": features(6, "image"), "database": "image"}
    for more in ({"group_by": "n"}, {"with_payload": ["n"]}):
        problem = assert_problem(bare.post("/search", {**body, **more}), 500, "storage_error")
        assert "item 'item-6'" in problem["detail"]


MANY_KEYS = [f"k{i}" for i in range(MAX_KEYS + 1)]


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({"group_by": ""}, "#/group_by", "group_by: string should have at least 1"),
        ({"group_by": "x" * 1001}, "#/group_by", "group_by: string should have at most 1000"),
        ({"group_by": ["n"]}, "#/group_by", "group_by: expected a string"),
        ({"group_by": "n", "group_size": 0}, "#/group_size", "group_size: "),
        ({"group_by": "n", "group_size": 1.5}, "#/group_size", "group_size: "),
        (
            {"group_by": "n", "group_size": 2**63},
            "#/group_size",
            "group_size: expected at most 500 results, got 10 groups",
        ),
        (
            {"group_by": "n", "group_size": 51},
            "#/group_size",
            "group_size: expected at most 500 results, got 10 groups",
        ),
        ({"group_by": "n", "limit": 401}, "#/limit", "limit: expected at most 400, got 401"),
        ({"group_by": "n", "offset": 391}, "#/offset", "offset: expected at most 400 together with limit"),
        ({"group_size": 2}, "#", "expected no group_size without group_by"),
        ({"group_by": "n", "cursor": "x"}, "#", "expected no group_by together with cursor"),
        ({"group_by": "n", "query": None, "queries": [features(0)]}, "#", "expected no group_by together with queries"),
        ({"with_payload": None}, "#/with_payload", "with_payload: expected true, false, or a list of keys"),
        ({"with_payload": 1}, "#/with_payload", "with_payload: expected true, false, or a list of keys"),
        ({"with_payload": "n"}, "#/with_payload", "with_payload: expected true, false, or a list of keys"),
        ({"with_payload": {"n": 1}}, "#/with_payload", "with_payload: expected true, false, or a list of keys"),
        ({"with_payload": []}, "#/with_payload", "with_payload: expected at least one"),
        ({"with_payload": MANY_KEYS}, "#/with_payload", "with_payload: expected fewer"),
        ({"with_payload": ["n", ""]}, "#/with_payload/1", "with_payload[1]: string should have at least 1"),
        ({"with_payload": ["n", 1]}, "#/with_payload/1", "with_payload[1]: expected a string"),
        ({"with_payload": ["n", "x" * 1001]}, "#/with_payload/1", "with_payload[1]: string should have at most 1000"),
    ],
)
def test_groups_and_parts_that_make_no_sense(service, body, pointer, words):
    problem = assert_problem(service.post("/search", {"query": features(0), **body}), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["detail"].startswith(words)


def test_deep_paths_and_long_lists_of_keys(service):
    deep = ".".join(["a"] * 500)
    assert search(service, {"query": features(0), "group_by": deep})["results"] == []
    keys = [".".join(["a"] * 500)[:-1] + str(i % 10) for i in range(MAX_KEYS)]
    assert search(service, {"query": features(0), "limit": 1, "with_payload": keys})["results"][0]["payload"] == {}
