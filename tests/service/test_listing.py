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
