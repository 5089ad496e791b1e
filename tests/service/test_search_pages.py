"""Pages and thresholds, against the plain search; pages while the collection changes."""

import base64
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ranking import least_float32
from service.schemas.search import SearchReply
from tests.service.harness import InProcess, assert_problem, features
from tests.service.plain import DATABASES, KINDS, Plain, fill_with_ties, latents, shown, tied_item

MAX_LIMIT = 70
databases = st.permutations(DATABASES).flatmap(lambda names: st.sampled_from([names[:1], names[:2], names]))
metrics = st.sampled_from(["cosine", "euclidean"])
queries = st.builds(lambda i, kind: features(i, *kind), st.integers(0, 20), st.sampled_from(KINDS))
EVEN = {"must": [{"key": "even", "match": {"value": True}}]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """60 items; nothing changes them."""
    service = InProcess(tmp_path_factory.mktemp("pages") / "data", max_limit=MAX_LIMIT)
    service.create()
    fill_with_ties(service)
    yield service
    service.close()


@pytest.fixture(scope="module")
def plain(service):
    return Plain(service)


@pytest.fixture
def changing(tmp_path):
    service = InProcess(tmp_path / "data", max_limit=MAX_LIMIT)
    service.create()
    fill_with_ties(service)
    yield service
    service.close()


def search(service, body):
    reply = service.ok("POST", "/search", body)
    SearchReply.model_validate(reply)
    return reply


def empty(service):
    service.ok("POST", "/items/delete", {"filter": {"must_not": [{"ids": ["nobody"]}]}})


def pages(service, body, sizes):
    """The pages of a search, each of the next of these sizes, until there are no more."""
    found, cursor = [], None
    for size in sizes:
        reply = search(service, {**body, "limit": size, **({} if cursor is None else {"cursor": cursor})})
        found.append(reply["results"])
        cursor = reply["next_cursor"]
        if cursor is None:
            return found
        assert len(reply["results"]) == size
    raise AssertionError("more pages than expected")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_offsets_pages_and_thresholds_are_cuts_of_the_plain_search(service, plain, data):
    query, names, metric = data.draw(queries), data.draw(databases), data.draw(metrics)
    even = data.draw(st.booleans())
    body = {"query": query, "database": names, "metric": metric, **({"filter": EVEN} if even else {})}

    holds = (lambda payload: payload["even"]) if even else (lambda _: True)
    want = shown(plain.search(latents(query), names, metric, holds=holds))
    threshold = data.draw(st.none() | st.sampled_from([hit["score"] for hit in want]) | st.floats(-40, 1.5))
    if threshold is not None:
        body["score_threshold"] = threshold
        want = [hit for hit in want if hit["score"] >= threshold]
    offset = data.draw(st.integers(0, MAX_LIMIT - 1))
    limit = data.draw(st.integers(1, MAX_LIMIT - offset))
    reply = search(service, {**body, "offset": offset, "limit": limit})
    assert reply["results"] == want[offset : offset + limit]
    assert (reply["next_cursor"] is None) == (len(want) <= offset + limit)

    if len(want) <= MAX_LIMIT:
        sizes = data.draw(st.lists(st.integers(1, 25), min_size=5, max_size=5)) + [25] * 4
        assert [hit for page in pages(service, body, sizes) for hit in page] == want


def test_a_page_by_offset_goes_on_by_cursor(service, plain):
    body = {"query": features(3), "database": DATABASES, "limit": 7}
    first = search(service, {**body, "offset": 20})
    second = search(service, {**body, "cursor": first["next_cursor"], "limit": 9})
    want = shown(plain.search(latents(features(3)), DATABASES, "cosine"))
    assert first["results"] + second["results"] == want[20:36]


def test_a_cursor_may_be_used_again_and_with_another_limit_and_payload(service):
    body = {"query": features(3), "limit": 5, "with_payload": False}
    cursor = search(service, body)["next_cursor"]
    page = search(service, {**body, "cursor": cursor})
    assert page["results"] == search(service, {**body, "cursor": cursor, "offset": 0, "filter": None})["results"]
    longer = search(service, {**body, "cursor": cursor, "limit": 6, "with_payload": ["n"]})["results"]
    assert [{**hit, "payload": {"n": hit["payload"]["n"]}} for hit in longer] == longer
    assert [hit["id"] for hit in longer[:5]] == [hit["id"] for hit in page["results"]]


OTHERS = [
    {"query": features(4)},
    {"database": ["text"]},
    {"database": ["image", "pair"]},
    {"metric": "euclidean"},
    {"filter": EVEN},
    {"score_threshold": -1},
    {"query": None, "query_id": "item-2"},
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_cursor_of_another_search_is_refused(service, other):
    body = {"query": features(3), "limit": 5, "database": ["pair", "image"], "metric": "cosine"}
    cursor = search(service, body)["next_cursor"]
    problem = assert_problem(service.post("/search", {**body, **other, "cursor": cursor}), 422, "invalid_request")
    assert "expected a cursor of this search, got one of another query or collection" in problem["detail"]
    assert problem["errors"][0]["pointer"] == "#/cursor"


def test_a_cursor_of_another_collection_is_refused(changing):
    changing.create("other")
    body = {"query": features(3), "limit": 5}
    cursor = search(changing, body)["next_cursor"]
    response = changing.post("/collections/other/search", {**body, "cursor": cursor})
    assert "another query or collection" in assert_problem(response, 422, "invalid_request")["detail"]


def test_a_cursor_of_an_item_that_was_indexed_again_is_refused(changing):
    by_example = {"query_by": {"positive": [features(1)], "negative": ["item-2"]}}
    for body in ({"query_id": "item-2", "limit": 3}, {**by_example, "limit": 3}):
        cursor = search(changing, body)["next_cursor"]
        assert len(search(changing, {**body, "cursor": cursor})["results"]) == 3
        changing.ok("POST", "/index", {"items": [tied_item(2)]})
        response = changing.post("/search", {**body, "cursor": cursor})
        assert "another query or collection" in assert_problem(response, 422, "invalid_request")["detail"]


def packed(key=0.0, seq=1, database=0, depth=5, search=b"x" * 8):
    return base64.urlsafe_b64encode(struct.pack(">dqIq8s", key, seq, database, depth, search)).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "AAAA",
        "é" * 48,
        "🐈",
        "A" * 47,
        "A" * 49,
        "A" * 52,
        "=" * 48,
        packed(key=float("nan")),
        packed(depth=-1),
        packed(key=float("inf")),
        packed()[:-1],
        packed() + "\n",
        " " + packed(),
        "x" * 100_000,
    ],
)
def test_what_is_no_cursor_is_refused(service, cursor):
    problem = assert_problem(service.post("/search", {"query": features(0), "cursor": cursor}), 422, "invalid_request")
    assert problem["detail"].startswith("cursor: expected the next_cursor of a page, got ")
    assert len(problem["detail"]) < 200


@pytest.mark.parametrize("field", ["key", "seq", "database", "depth"])
def test_a_cursor_that_somebody_made_up_does_no_harm(service, plain, field):
    """Whatever is in it, the page is what follows that place."""
    body = {"query": features(3), "database": ["image"], "limit": 5}
    parts = struct.unpack(">dqIq8s", base64.urlsafe_b64decode(search(service, body)["next_cursor"]))
    good = dict(zip(("key", "seq", "database", "depth", "search"), parts, strict=True))
    extremes = {
        "key": [-1e300, 1e300],
        "seq": [-(2**63), 2**63 - 1],
        "database": [0, 2**32 - 1],
        "depth": [0, 2**63 - 1],
    }
    hits = plain.search(latents(features(3)), ["image"], "cosine")
    for value in extremes[field]:
        place = {**good, field: value}
        after = [hit for hit in hits if hit["order"] > (place["key"], place["seq"], place["database"])]
        reply = search(service, {**body, "cursor": packed(**place)})
        assert reply["results"] == shown(after)[:5]


def test_pages_end_at_the_highest_limit(service, plain):
    body = {"query": features(3), "database": DATABASES}
    want = shown(plain.search(latents(features(3)), DATABASES, "cosine"))
    assert len(want) > MAX_LIMIT
    first = search(service, {**body, "limit": 30})
    second = search(service, {**body, "limit": 30, "cursor": first["next_cursor"]})
    third = search(service, {**body, "limit": 30, "cursor": second["next_cursor"]})
    assert first["results"] + second["results"] + third["results"] == want[:MAX_LIMIT]
    assert third["next_cursor"] is not None
    problem = assert_problem(service.post("/search", {**body, "cursor": third["next_cursor"]}), 422, "invalid_request")
    assert problem["detail"] == (
        f"cursor: the page would begin behind the first {MAX_LIMIT} results, and no search goes deeper (CCQ_MAX_LIMIT)"
    )


def test_the_page_behind_the_deepest_one_is_refused_unless_nothing_is_there(changing):
    ids = {f"new-{i}" for i in range(MAX_LIMIT + 1)}
    empty(changing)
    changing.ok("POST", "/index", {"items": [{"id": name, "features": features(0)} for name in ids]})
    body = {"query": features(3), "database": "image", "limit": MAX_LIMIT}
    reply = search(changing, body)
    behind = {**body, "cursor": reply["next_cursor"]}
    assert_problem(changing.post("/search", behind), 422, "invalid_request")
    (last,) = ids - {hit["id"] for hit in reply["results"]}
    assert changing.delete(f"/items/{last}").status_code == 204
    assert search(changing, behind)["results"] == []
    assert search(changing, behind)["next_cursor"] is None
    assert search(changing, body)["next_cursor"] is None


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_pages_while_items_come_and_go(tmp_path_factory, data):
    service = InProcess(tmp_path_factory.mktemp("changing") / "data", max_limit=1000)
    try:
        service.create()
        fill_with_ties(service)
        turn_pages(service, data)
    finally:
        service.close()


def turn_pages(service, data):
    query, names, metric = data.draw(queries), data.draw(databases), data.draw(metrics)
    body = {"query": query, "database": names, "metric": metric}
    changed, seen, cursor, place = set(), [], None, (-np.inf,)
    for _ in range(400):
        limit = data.draw(st.integers(1, 30))
        hits = Plain(service).search(latents(query), names, metric)
        after = [hit for hit in hits if hit["order"] > place]
        reply = search(service, {**body, "limit": limit, **({} if cursor is None else {"cursor": cursor})})
        assert reply["results"] == shown(after[:limit])
        assert (reply["next_cursor"] is None) == (len(after) <= limit)
        seen += [(hit["id"], hit["database"]) for hit in reply["results"]]
        cursor = reply["next_cursor"]
        if cursor is None:
            break
        place = after[limit - 1]["order"]
        if len(changed) < 60:
            numbers = data.draw(st.lists(st.integers(0, 90), max_size=20, unique=True))
            half = len(numbers) // 2
            changed |= {f"item-{i}" for i in numbers}
            service.ok("POST", "/items/delete", {"ids": [f"item-{i}" for i in numbers[:half]]})
            if numbers[half:]:
                service.ok("POST", "/index", {"items": [tied_item(i) for i in numbers[half:]]})
    unchanged = [hit for hit in seen if hit[0] not in changed]
    assert len(set(unchanged)) == len(unchanged)
    assert set(unchanged) == {(hit["id"], hit["database"]) for hit in hits if hit["id"] not in changed}


def test_many_items_that_were_put_before_a_cursor_make_the_search_go_deeper(changing):
    far, near = features(200, "image"), features(3, "image")
    body = {"query": near, "database": "image", "limit": 3}
    empty(changing)
    changing.ok("POST", "/index", {"items": [{"id": f"far-{i}", "features": far} for i in range(9)]})
    cursor = search(changing, body)["next_cursor"]
    changing.ok("POST", "/index", {"items": [{"id": f"near-{i}", "features": near} for i in range(MAX_LIMIT - 7)]})
    page = search(changing, {**body, "cursor": cursor})
    assert [hit["id"] for hit in page["results"]] == ["far-3", "far-4", "far-5"]
    # 63 near and 6 far have been passed: the 70th is the last that a page may have.
    page = search(changing, {**body, "cursor": page["next_cursor"]})
    assert [hit["id"] for hit in page["results"]] == ["far-6"]
    assert_problem(changing.post("/search", {**body, "cursor": page["next_cursor"]}), 422, "invalid_request")


# -- thresholds ------------------------------------------------------------------------------------------------------


@given(st.floats(-1e6, 1e6) | st.floats(-1, 1) | st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_least_float32(threshold):
    least = least_float32(threshold)
    assert float(str(least)) >= threshold
    assert float(str(np.nextafter(least, np.float32(-np.inf)))) < threshold


def test_thresholds_beyond_all_numbers_of_32_bits():
    assert least_float32(1e300) == np.inf
    assert float(str(least_float32(-1e300))) >= -1e300


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_threshold_holds_for_batches_and_stored_items(service, metric):
    body = {"database": ["image", "text"], "limit": 30, "metric": metric}
    for query in ({"queries": [features(1), features(30)]}, {"query_id": "item-2"}):
        whole = search(service, {**body, **query})["results"]
        lists = whole if "queries" in query else [whole]
        for threshold in (lists[0][4]["score"], lists[-1][20]["score"], 1e300, -1e300):
            cut = search(service, {**body, **query, "score_threshold": threshold})["results"]
            want = [[hit for hit in hits if hit["score"] >= threshold] for hits in lists]
            assert (cut if "queries" in query else [cut]) == want
        assert whole != cut or threshold == -1e300


@pytest.mark.parametrize(
    ("literal", "status", "code"),
    [
        ("NaN", 400, "invalid_json"),
        ("-Infinity", 400, "invalid_json"),
        ("1e999", 400, "invalid_json"),
        ('"0.5"', 422, "invalid_request"),
        ("true", 422, "invalid_request"),
        ("[0]", 422, "invalid_request"),
    ],
)
def test_thresholds_that_are_no_numbers(service, literal, status, code):
    body = b'{"query_id": "item-2", "score_threshold": ' + literal.encode() + b"}"
    response = service.request("POST", "/search", content=body, headers={"Content-Type": "application/json"})
    problem = assert_problem(response, status, code)
    assert status == 400 or problem["errors"][0]["pointer"] == "#/score_threshold"


# -- what makes no sense ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({"offset": -1}, "#/offset", "offset: "),
        ({"offset": 1.5}, "#/offset", "offset: "),
        ({"offset": True}, "#/offset", "offset: "),
        ({"offset": "1"}, "#/offset", "offset: "),
        ({"offset": 10**30}, "#/offset", "offset: "),
        ({"offset": 2**64 - 1}, "#/offset", "offset: expected at most 70 together with limit, got 184467440"),
        ({"offset": 61}, "#/offset", "offset: expected at most 70 together with limit, got 61 and 10"),
        ({"limit": 71, "offset": 1}, "#/limit", "limit: expected at most 70, got 71"),
        ({"cursor": 1}, "#/cursor", "cursor: expected a string"),
        ({"cursor": packed(), "offset": 1}, "#", "expected no offset together with cursor"),
        ({"query": None, "queries": [features(0)], "offset": 1}, "#", "expected no offset together with queries"),
        (
            {"query": None, "queries": [features(0)], "cursor": packed()},
            "#",
            "expected no cursor together with queries",
        ),
    ],
)
def test_pages_that_make_no_sense(service, body, pointer, words):
    problem = assert_problem(service.post("/search", {"query": features(0), **body}), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["detail"].startswith(words)


def test_batches_have_no_cursor(service):
    assert "next_cursor" not in search(service, {"queries": [features(0)], "offset": 0})
