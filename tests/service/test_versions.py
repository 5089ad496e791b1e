"""Versions of items: shown, and a write on condition of one is done only if it holds, whoever else writes."""

import threading

import orjson
import pytest

from service.errors import VersionMismatchError
from service.indexing import prepare_items, store_items
from service.items import get_item, set_payload
from service.schemas.items import PayloadReply
from tests.service.harness import assert_problem, features, item


def listed(service):
    return {found["id"]: found["version"] for found in service.get("/items", params={"limit": 100}).json()["items"]}


def ask(service, method, path, body=None, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return service.request(method, path, headers=names, **({} if method == "DELETE" else {"json": body}))


@pytest.fixture
def three(service):
    """Items 0 and 1 of version 1, item 2 of version 2."""
    service.ok("POST", "/index", {"items": [item(0), item(1)]})
    service.ok("POST", "/index", {"items": [item(2)]})
    return service


def test_an_item_has_the_version_of_the_collection_when_it_was_written(three):
    assert listed(three) == {"item-0": 1, "item-1": 1, "item-2": 2}
    found = three.get("/items/item-2")
    assert found.json()["version"] == 2
    assert found.headers["etag"] == '"2"'
    three.ok("POST", "/items/delete", {"ids": ["item-0"]})
    three.ok("POST", "/index", {"items": [item(1)]})
    assert listed(three) == {"item-2": 2, "item-1": 4}
    three.restart()
    assert listed(three) == {"item-2": 2, "item-1": 4}


# -- If-Match --------------------------------------------------------------------------------------------------------


def test_delete_if_the_version_is_this(three):
    refused = assert_problem(ask(three, "DELETE", "/items/item-2", If_Match='"1"'), 412, "version_mismatch")
    assert refused["detail"] == "item 'item-2': expected version 1, but its version is 2"
    assert [fault["pointer"] for fault in refused["errors"]] == ["If-Match"]
    assert three.get("/items/item-2").status_code == 200
    assert ask(three, "DELETE", "/items/item-2", If_Match='"2"').status_code == 204
    assert_problem(ask(three, "DELETE", "/items/item-2", If_Match='"2"'), 404, "item_not_found")
    assert ask(three, "DELETE", "/items/item-1", If_Match="*").status_code == 204
    assert listed(three) == {"item-0": 1}


@pytest.mark.parametrize("given", ["2", '"x"', 'W/"2"', '"1", "2"', "", '"99999999999999999999"', '"-1"'])
def test_an_if_match_that_is_no_version(three, given):
    for method, path in (("DELETE", "/items/item-2"), ("PUT", "/items/item-2/payload")):
        problem = assert_problem(ask(three, method, path, If_Match=given), 422, "invalid_request")
        assert problem["errors"][0]["pointer"] == "If-Match"
    assert listed(three)["item-2"] == 2


# -- payloads --------------------------------------------------------------------------------------------------------


def test_a_payload_alone_is_replaced(three):
    query = {"query": features(0), "limit": 3}
    before = three.ok("POST", "/search", query)["results"]
    reply = three.ok("PUT", "/items/item-0/payload", {"new": [1, "é"]})
    PayloadReply.model_validate(reply)
    assert (reply["id"], reply["version"]) == ("item-0", 3)
    for _ in range(2):
        after = three.ok("POST", "/search", query)["results"]
        assert [{**hit, "payload": {"new": [1, "é"]}} if hit["id"] == "item-0" else hit for hit in before] == after
        assert list(listed(three).items()) == [("item-0", 3), ("item-1", 1), ("item-2", 2)]
        three.restart()
    response = three.request(
        "PUT", "/items/item-0/payload", content=b"null", headers={"Content-Type": "application/json"}
    )
    assert response.json()["version"] == 4
    assert three.ok("GET", "/items/item-0")["payload"] is None


def test_a_payload_only_if_the_version_is_this(three):
    assert_problem(ask(three, "PUT", "/items/item-0/payload", {"a": 1}, If_Match='"2"'), 412, "version_mismatch")
    assert ask(three, "PUT", "/items/item-0/payload", {"a": 1}, If_Match='"1"').json()["version"] == 3
    assert_problem(ask(three, "PUT", "/items/item-0/payload", {"a": 2}, If_Match='"1"'), 412, "version_mismatch")
    assert three.ok("GET", "/items/item-0")["payload"] == {"a": 1}


def test_the_payload_of_no_item(three):
    for headers in ({}, {"If_Match": '"1"'}):
        problem = assert_problem(ask(three, "PUT", "/items/nobody/payload", {}, **headers), 404, "item_not_found")
        assert problem["errors"][0]["pointer"] == "{id}"
    assert_problem(three.put("/collections/none/items/item-0/payload", {}), 404, "collection_not_found")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"[]", 422, "invalid_request"),
        (b'"x"', 422, "invalid_request"),
        (b"{", 400, "invalid_json"),
        (b"", 400, "empty_body"),
        (b'{"a": 123456789012345678901234567890}', 422, "invalid_request"),
        (b'{"a": "' + b"x" * 70_000 + b'"}', 422, "invalid_request"),
        (b'{"a": [' + b"[]," * (1 << 20) + b"1]}", 413, "body_too_large"),
    ],
)
def test_a_body_that_is_no_payload(three, body, status, code):
    kind = {"Content-Type": "application/json"}
    problem = assert_problem(three.request("PUT", "/items/item-0/payload", content=body, headers=kind), status, code)
    if code == "invalid_request":
        assert problem["errors"][0]["pointer"].startswith("#")
    assert three.ok("GET", "/items/item-0")["payload"] == {"n": 0}


def test_ids_with_slashes_have_payloads_too(service):
    names = ["a/payload", "a", "payload", "/payload"]
    service.ok("POST", "/index", {"items": [{"id": name, "features": features(0)} for name in names]})
    for i, name in enumerate(names):
        service.ok("PUT", f"/items/{name}/payload", {"n": i})
    assert {name: service.ok("GET", f"/items/{name}")["payload"] for name in names} == {
        name: {"n": i} for i, name in enumerate(names)
    }


def test_indexes_follow(three):
    three.ok("PUT", "/collections/default", {"model": "tiny", "indexes": ["tags"]})

    def having(tag):
        body = {"query": features(0), "filter": {"must": [{"key": "tags", "match": {"value": tag}}]}}
        return [hit["id"] for hit in three.ok("POST", "/search", body)["results"]]

    three.ok("PUT", "/items/item-1/payload", {"tags": ["red", "blue"]})
    assert (having("red"), having("blue"), having("green")) == (["item-1"], ["item-1"], [])
    three.ok("PUT", "/items/item-1/payload", {"tags": ["green", "blue"]})
    assert (having("red"), having("blue"), having("green")) == ([], ["item-1"], ["item-1"])
    three.request("PUT", "/items/item-1/payload", content=b"null", headers={"Content-Type": "application/json"})
    assert (having("red"), having("blue"), having("green")) == ([], [], [])


# -- if_version ------------------------------------------------------------------------------------------------------


def test_index_if_each_version_is_this(three):
    items = [{**item(5), "if_version": 0}, {**item(1, new=True), "if_version": 1}, item(2, new=True)]
    refused = assert_problem(
        three.post("/index", {"items": [*items, {**item(0), "if_version": 3}]}), 412, "version_mismatch"
    )
    assert refused["errors"] == [
        {"pointer": "#/items/3/if_version", "detail": "items[3].if_version: " + refused["detail"]}
    ]
    assert refused["detail"] == "item 'item-0': expected version 3, but its version is 1"
    assert listed(three) == {"item-0": 1, "item-1": 1, "item-2": 2}
    three.ok("POST", "/index", {"items": items})
    assert listed(three) == {"item-0": 1, "item-5": 3, "item-1": 3, "item-2": 3}
    assert_problem(three.post("/index", {"items": items[:1]}), 412, "version_mismatch")
    gone = assert_problem(three.post("/index", {"items": [{**item(7), "if_version": 2}]}), 412, "version_mismatch")
    assert gone["detail"].endswith("expected version 2, but there is no such item (version 0)")


@pytest.mark.parametrize("given", [-1, "1", 1.5, True])
def test_an_if_version_that_is_none(three, given):
    problem = assert_problem(
        three.post("/index", {"items": [{**item(0), "if_version": given}]}), 422, "invalid_request"
    )
    assert problem["errors"][0]["pointer"] == "#/items/0/if_version"


@pytest.mark.parametrize("way", ["payload", "index", "new"])
def test_of_writers_at_one_time_one_succeeds(three, way):
    """All threads write on the same condition at one time, again and again: exactly one of them may."""
    collection, settings = three.catalog.collection("default"), three.settings
    together, outcomes = threading.Barrier(6), []

    def attempt(turn, name):
        if way == "payload":
            version = get_item(collection, "item-0")["version"]
            together.wait(20)
            set_payload(collection, "item-0", b'{"by": %d}' % name, settings, version)
            return
        version = 0 if way == "new" else get_item(collection, "item-0")["version"]
        given = {**item(0, by=name), "id": f"turn {turn}" if way == "new" else "item-0", "if_version": version}
        prepared = prepare_items(collection, orjson.dumps({"items": [given]}), settings)
        together.wait(20)
        store_items(collection, prepared)

    def write(name):
        for turn in range(20):
            try:
                attempt(turn, name)
                outcomes.append((turn, "stored"))
            except VersionMismatchError:
                outcomes.append((turn, "refused"))
            together.wait(20)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == sorted((turn, how) for turn in range(20) for how in ["stored"] + 5 * ["refused"])
    assert collection.view.version == 2 + 20
