"""Codes and features of listed items, and codes that are given instead of features."""

import base64
import hashlib

import numpy as np
import pytest

from service.listing import read_all
from service.schemas.items import ItemPage
from tests.service.harness import DIMS, MODEL, MODEL_FILE, PAIRS, InProcess, assert_problem, features, fill, item

CHECKSUM = hashlib.sha256(MODEL_FILE).hexdigest()


@pytest.fixture
def keeping(service):
    """A service with a second collection, `kept`, that keeps features."""
    service.ok("PUT", "/collections/kept", {"model": "tiny", "keep": "float16"})
    return service


def listed(service, collection="default", **options):
    page = service.get(f"/collections/{collection}/items", params={"limit": 100, **options}).json()
    ItemPage.model_validate(page)
    return page["items"]


def bare(item):
    """A listed item as it is to be indexed."""
    return {key: value for key, value in item.items() if key not in ("version", "databases")}


def test_codes_are_those_of_the_model(filled):
    for i, found in enumerate(listed(filled, with_codes=True)):
        assert list(found["codes"]) == found["databases"]
        for database, code in found["codes"].items():
            names = list(DIMS) if database == "pair" else [database]
            expected = MODEL.encode({name: PAIRS[name][i : i + 1] for name in names})
            assert base64.b64decode(code) == expected.tobytes()
    assert all("codes" not in found and "features" not in found for found in listed(filled))


def test_features_come_with_the_precision_that_they_are_kept_with(keeping):
    items = [item(0), item(1, "text"), item(2, "image")]
    keeping.ok("POST", "/collections/kept/index", {"items": items})
    for given, found in zip(items, listed(keeping, "kept", with_features=True), strict=True):
        assert given["features"].keys() == found["features"].keys()
        for name, vector in given["features"].items():
            kept = np.frombuffer(base64.b64decode(found["features"][name]), "<f4")
            assert kept == pytest.approx(vector, abs=2e-3)
            assert kept.tolist() != vector
    assert_problem(keeping.get("/items", params={"with_features": True}), 422, "invalid_request")


@pytest.mark.parametrize("collection", ["default", "kept"])
def test_what_is_listed_can_be_indexed_elsewhere_without_loss(keeping, tmp_path, collection):
    items = [item(i, *kinds) for i, kinds in enumerate([("image",), ("text",), ("image", "text")] * 5)]
    keeping.ok("POST", f"/collections/{collection}/index", {"items": items})
    options = {"with_codes": True, **({"with_features": True} if collection == "kept" else {})}
    before = listed(keeping, collection, **options)
    other = InProcess(tmp_path / "other")
    try:
        other.create("default", "renamed")
        other.ok("PUT", "/collections/kept", {"model": "renamed", "keep": "float16"})
        body = {"items": [bare(found) for found in before], "model_checksum": CHECKSUM}
        assert other.ok("POST", f"/collections/{collection}/index", body)["indexed"] == 15
        assert listed(other, collection, **options) == before
        query = {"query": features(3), "limit": 20, "database": ["image", "text", "pair"]}
        there = other.ok("POST", f"/collections/{collection}/search", query)["results"]
        assert there == keeping.ok("POST", f"/collections/{collection}/search", query)["results"]
    finally:
        other.close()


def coded(i, *databases, **rest):
    codes = {name: base64.b64encode(bytes(MODEL.code_width)).decode() for name in databases}
    return {"id": f"item-{i}", "codes": codes, **rest}


@pytest.mark.parametrize(
    ("body", "status", "code", "words"),
    [
        ({"items": [coded(0, "image")], "model_checksum": "0" * 64}, 409, "collection_conflict", "0000"),
        ({"items": [coded(0)]}, 422, "invalid_request", "items[0].codes: expected codes of one modality"),
        ({"items": [coded(0, "image", "text")]}, 422, "invalid_request", "got image, text"),
        ({"items": [coded(0, "image", "pair")]}, 422, "invalid_request", "got image, pair"),
        ({"items": [coded(0, "pair")]}, 422, "invalid_request", "got pair"),
        ({"items": [coded(0, "sound")]}, 422, "invalid_request", "items[0].codes.sound: unknown database"),
        ({"items": [coded(0, "image"), item(1)]}, 422, "invalid_request", "items[1]: expected codes in every item"),
        ({"items": [item(1), coded(0, "image")]}, 422, "invalid_request", "items[1]: expected codes in every item"),
        ({"items": [{"id": "a", "codes": {"text": "AAA="}}]}, 422, "invalid_request", "expected 3 bytes, got 2"),
        ({"items": [{"id": "a", "codes": {"text": "é"}}]}, 422, "invalid_request", "expected base64"),
        ({"items": [{"id": "a", "codes": {"text": 7}}]}, 422, "invalid_request", "items[0].codes.text"),
    ],
)
def test_codes_that_cannot_be_used(service, body, status, code, words):
    problem = assert_problem(service.post("/index", {"model_checksum": CHECKSUM, **body}), status, code)
    assert words in problem["detail"]


def test_codes_need_the_checksum_of_their_model(service):
    problem = assert_problem(service.post("/index", {"items": [coded(0, "image")]}), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == "#/model_checksum"


def test_a_collection_that_keeps_features_needs_those_of_the_codes(keeping):
    body = {"items": [coded(0, "image")], "model_checksum": CHECKSUM}
    problem = assert_problem(keeping.post("/collections/kept/index", body), 422, "invalid_request")
    assert "keeps features" in problem["detail"]
    body["items"][0]["features"] = features(0, "text")
    assert_problem(keeping.post("/collections/kept/index", body), 422, "invalid_request")
    body["items"][0]["features"] = features(0, "image")
    assert keeping.ok("POST", "/collections/kept/index", body)["indexed"] == 1


def test_pages_with_features_end_at_the_longest_reply(tmp_path):
    service = InProcess(tmp_path / "data", max_reply_bytes=2000)
    try:
        service.create()
        service.ok("PUT", "/collections/default", {"model": "tiny"})
        fill(service)
        short = service.get("/items", params={"limit": 100}).json()
        long = service.get("/items", params={"limit": 100, "with_codes": True}).json()
        assert 1 <= len(long["items"]) < len(short["items"]) < 60
    finally:
        service.close()


def test_everything_is_read_as_it_is_at_one_moment(filled):
    collection = filled.catalog.collection("default")
    parts = read_all(collection, features=False)
    first = next(parts)
    filled.ok("POST", "/items/delete", {"ids": ["item-3"]})
    assert [row.id for row in first.rows] == [f"item-{i}" for i in range(60)]
    assert list(parts) == []
    assert sum(len(part.rows) for part in read_all(collection, features=False)) == 59


# -- those that match ------------------------------------------------------------------------------------------------


def found(service, collection="default", **body):
    page = service.ok("POST", f"/collections/{collection}/items/list", body)
    ItemPage.model_validate(page)
    return page


EVEN = {"must": [{"key": "even", "match": {"value": True}}]}


@pytest.mark.parametrize("indexed", [False, True])
def test_those_that_match_come_in_order_page_by_page(filled, indexed):
    filled.put("/collections/default", {"model": "tiny", "indexes": ["even"] if indexed else []})
    filled.ok("POST", "/items/delete", {"ids": ["item-4", "item-5"]})
    filled.ok("POST", "/index", {"items": [{**item(2), "payload": {"even": True}}]})  # it is the last now
    want = [i for i in range(0, 60, 2) if i not in (2, 4)] + [2]
    whole = found(filled, filter=EVEN, limit=1000)
    assert [row["id"] for row in whole["items"]] == [f"item-{i}" for i in want]
    assert (whole["total"], whole["next_cursor"], whole["model"]) == (29, None, "tiny")
    every = {row["id"]: row for row in listed(filled)}
    assert whole["items"] == [every[row["id"]] for row in whole["items"]]
    for limit in (1, 7, 28, 29):
        pages, cursor = [], None
        while True:
            page = found(filled, filter=EVEN, limit=limit, **({} if cursor is None else {"cursor": cursor}))
            assert page["total"] == 29
            pages.append(page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert [len(page) for page in pages] == [limit] * (29 // limit) + ([29 % limit] if 29 % limit else [])
        assert [row for page in pages for row in page] == whole["items"]


def test_a_limit_of_none_counts(filled):
    nothing = {"must": [{"key": "even", "match": {"value": "no"}}]}
    for filter_, total in ((None, 60), (EVEN, 30), (nothing, 0), ({}, 60)):
        page = found(filled, limit=0, **({} if filter_ is None else {"filter": filter_}))
        assert page == {"items": [], "next_cursor": None, "model": "tiny", "total": total}
    assert filled.ok("GET", "/items?limit=1")["total"] == 60


def test_some_by_their_ids_with_codes_and_features(keeping):
    keeping.ok("POST", "/collections/kept/index", {"items": [item(i) for i in range(9)]})
    some = {"must": [{"ids": ["item-7", "nobody", "item-1"]}]}
    page = found(keeping, "kept", filter=some, with_codes=True, with_features=True)
    every = {row["id"]: row for row in listed(keeping, "kept", with_codes=True, with_features=True)}
    assert page["items"] == [every["item-1"], every["item-7"]]


def test_a_long_page_of_those_that_match_goes_on(tmp_path):
    service = InProcess(tmp_path / "data", max_reply_bytes=3000)
    service.create()
    service.ok(
        "POST", "/index", {"items": [{**item(i), "payload": {"text": "x" * 900, "even": True}} for i in range(5)]}
    )
    ids, cursor = [], None
    while True:
        page = found(service, filter=EVEN, **({} if cursor is None else {"cursor": cursor}))
        assert 0 < len(page["items"]) < 4
        ids += [row["id"] for row in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert ids == [f"item-{i}" for i in range(5)]
    service.close()


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({"limit": 10_001}, "#/limit", "limit: expected at most 10000, got 10001"),
        ({"limit": -1}, "#/limit", "limit: input should be greater than or equal to 0"),
        ({"cursor": "?"}, "#/cursor", "cursor: expected the next_cursor of a page, got '?'"),
        ({"with_features": True}, "#/with_features", "with_features: collection 'default' keeps no features"),
        ({"ids": ["a"]}, "#/ids", "ids: unknown key, expected filter, limit, cursor, with_codes, with_features"),
        ({"filter": {"even": True}}, "#/filter/even", "filter.even: unknown key, "),
    ],
)
def test_lists_that_cannot_be(filled, body, pointer, words):
    problem = assert_problem(filled.post("/items/list", body), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["detail"].startswith(words)
