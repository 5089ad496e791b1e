"""Ids, payloads and paths that somebody will send sooner or later: they work exactly, or are refused by name."""

import json
from urllib.parse import quote

import pytest

from tests.service.harness import MODEL_FILE, assert_problem, features, item

JSON = {"Content-Type": "application/json"}

STRANGE_IDS = [
    " ",
    "a/b",
    "a//b/",
    "/",
    "a%2Fb",
    "%",
    "?x=1#y",
    "a b+c&d=e;f",
    "delete",
    "\x00",
    "a\x00b",
    "a\x00c",
    "\n\r\t",
    "'; DROP TABLE items_1; --",
    '"quoted"',
    "\\ud800",
    "\ufffd",
    "\ufeff",
    "\uffff",
    "é",
    "e\u0301",
    "É",
    "🐈\u200d⬛",
    "\U0010ffff",
    "x" * 512,
    "é" * 256,
    "nan",
    "None",
    "-0",
    "0",
    "00",
    "...",
    "‮abc",
]


def test_strange_ids_are_told_apart_byte_by_byte(service):
    items = [{"id": name, "features": features(i), "payload": {"id": name}} for i, name in enumerate(STRANGE_IDS)]
    assert service.ok("POST", "/index", {"items": items})["indexed"] == len(STRANGE_IDS)
    service.restart()
    for name in STRANGE_IDS:
        path = f"/items/{quote(name, safe='')}"
        stored = service.ok("GET", path)
        assert (stored["id"], stored["payload"]) == (name, {"id": name})
        found = service.ok("POST", "/search", {"query": features(0), "filter": {"must": [{"ids": [name]}]}})
        assert [hit["id"] for hit in found["results"]] == [name]
    listed = service.get("/items", params={"limit": 1000}).json()["items"]
    assert [found["id"] for found in listed] == STRANGE_IDS
    for i, name in enumerate(STRANGE_IDS, 1):
        assert service.delete(f"/items/{quote(name, safe='')}").status_code == 204
        assert service.ok("GET", "/collections/default")["items"] == len(STRANGE_IDS) - i


def test_a_slash_in_an_id_need_not_be_encoded(service):
    service.ok("POST", "/index", {"items": [{"id": "a/b c", "features": features(0)}]})
    assert service.ok("GET", "/items/a/b%20c")["id"] == "a/b c"
    assert service.ok("GET", "/collections/default/items/a%2Fb c")["id"] == "a/b c"


@pytest.mark.parametrize("name", [".", ".."])
def test_ids_that_no_client_can_put_into_a_path_are_reached_otherwise(service, name):
    service.ok("POST", "/index", {"items": [{"id": name, "features": features(0)}]})
    assert service.ok("POST", "/search", {"query_id": name})["results"] == []
    assert service.ok("POST", "/items/delete", {"ids": [name]})["deleted"] == 1


@pytest.mark.parametrize("bad", ["%FF", "%C3", "%ED%A0%80", "a%80", "%EF%BF%BD%FF"])
def test_bytes_that_are_no_utf8_name_nothing(service, bad):
    service.ok("POST", "/index", {"items": [{"id": name, "features": features(0)} for name in ("\ufffd", "a\ufffd")]})
    for method in ("GET", "DELETE"):
        problem = assert_problem(service.request(method, f"/items/{bad}"), 422, "invalid_request")
        assert problem["errors"][0]["pointer"] == "{id}"
    assert service.ok("GET", "/collections/default")["items"] == 2


@pytest.mark.parametrize(
    ("number", "meant"), [("0", "0"), ("-5", "-5"), ("9007199254740993", "9007199254740993"), (str(2**64 - 1),) * 2]
)
def test_integer_ids(service, number, meant):
    body = json.dumps({"items": [{"id": "ID", "features": features(0)}]}).replace('"ID"', number)
    assert service.request("POST", "/index", content=body, headers=JSON).status_code == 200
    assert service.ok("GET", f"/items/{meant}")["id"] == meant


@pytest.mark.parametrize("number", [str(2**64), "-9223372036854775809", "1" * 400, "1.0", "1e3", "-0.0"])
def test_numbers_that_are_no_safe_ids(service, number):
    body = json.dumps({"items": [{"id": "ID", "features": features(0)}]}).replace('"ID"', number)
    response = service.request("POST", "/index", content=body, headers=JSON)
    assert response.status_code in (400, 422)
    assert response.json()["code"] in ("invalid_json", "invalid_request")
    assert service.ok("GET", "/collections/default")["items"] == 0


EXACT_PAYLOADS = [
    "{}",
    '{"":""}',
    '{"a":null,"b":[],"c":{},"d":[[]],"e":false}',
    '{"a":18446744073709551615,"b":-9223372036854775808}',
    '{"a":1e19,"b":1.5e300,"c":5e-324,"d":-0.0,"e":0.1,"f":1.7976931348623157e308,"g":100000000000000000000.5}',
    '{"a":1.0,"b":1}',
    '{"\\u0000":"\\u0000\\u001f\\u007f","☃":"🐈","\\ud83d\\ude00":"\\ud83d\\ude00"}',
    '{"z":1,"a":2,"z2":3}',
    '{"digits in a string":"123456789012345678901234567890","f":1e30}',
    '{"a":' + "[" * 200 + "]" * 200 + "}",
]


@pytest.mark.parametrize("payload", EXACT_PAYLOADS)
def test_payloads_come_back_as_they_were(service, payload):
    vectors = json.dumps(features(0))
    body = f'{{"items": [{{"id": "a", "features": {vectors}, "payload": {payload}}}]}}'
    assert service.request("POST", "/index", content=body, headers=JSON).status_code == 200
    service.restart()

    def as_text(value):  # distinguishes 1 from 1.0 and 0.0 from -0.0, and keeps the order of keys
        return json.dumps(value)

    want = as_text(json.loads(payload))
    assert as_text(service.ok("GET", "/items/a")["payload"]) == want
    assert as_text(service.ok("GET", "/items")["items"][0]["payload"]) == want
    assert as_text(service.ok("POST", "/search", {"query": features(0)})["results"][0]["payload"]) == want


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        ('{"a":18446744073709551616}', "#/items/1/payload/a"),
        ('{"a":-9223372036854775809}', None),
        ('{"ok":1e30,"b":[0,{"c/d":123456789012345678901234567890}]}', "#/items/1/payload/b/1/c~1d"),
        ('{"a":' + "1" * 300 + "}", "#/items/1/payload/a"),
        ('{"a":' + "[" * 300 + "]" * 300 + "}", "#/items/1/payload"),
        ('{"a":1' + "0" * 400 + "}", None),
    ],
)
def test_payloads_that_would_come_back_as_something_else_are_refused(service, payload, pointer):
    vectors = json.dumps(features(0))
    first = f'{{"id": "ok", "features": {vectors}, "payload": {{"f": 1e19}}}}'
    body = f'{{"items": [{first}, {{"id": "a", "features": {vectors}, "payload": {payload}}}]}}'
    response = service.request("POST", "/index", content=body, headers=JSON)
    assert response.status_code in (400, 422), response.text
    assert pointer is None or [fault["pointer"] for fault in response.json()["errors"]] == [pointer]
    assert service.ok("GET", "/collections/default")["items"] == 0


@pytest.mark.parametrize("key", ["features", "shadowed"])
def test_what_is_nested_deeply_besides_a_large_number_is_refused(service, key):
    deep = "[" * 1000 + "]" * 1000
    vectors = f'{{"image": {deep}}}' if key == "features" else json.dumps(features(0))
    items = f'[{{"id": "a", "features": {vectors}, "payload": {{"f": 1e19}}}}]'
    body = f'{{"items": {deep}, "items": {items}}}' if key == "shadowed" else f'{{"items": {items}}}'
    response = service.request("POST", "/index", content=body, headers=JSON)
    assert response.status_code == 422, response.text
    assert response.json()["code"] in ("invalid_request", "invalid_features")


@pytest.mark.parametrize("name", ["a\ud800", "\udfff"])
def test_lone_surrogates_in_ids_are_refused(service, name):
    body = json.dumps({"items": [{"id": name, "features": features(0)}]}).encode()
    assert_problem(service.request("POST", "/index", content=body, headers=JSON), 400, "invalid_json")


def test_a_repeated_key_means_the_last(service):
    vectors = json.dumps(features(0))
    body = f'{{"items": [{{"id": "a", "id": "b", "features": {vectors}, "payload": {{"x": 1, "x": 2}}}}]}}'
    assert service.request("POST", "/index", content=body, headers=JSON).status_code == 200
    assert service.ok("GET", "/items/b")["payload"] == {"x": 2}


@pytest.mark.parametrize("name", ["..", "a/b", "a\x00", "ü", "a" * 65, "-", ".", "_x", "a ", "a\n", "%2e%2e"])
def test_names_of_collections_and_models_are_plain(bare, name):
    encoded = quote(name, safe="")
    for path in (f"/collections/{encoded}", f"/models/{encoded}"):
        response = bare.request("PUT", path, content=b"{}", headers=JSON)
        assert response.status_code in (404, 405, 422), response.text
        assert response.json()["code"] in ("invalid_request", "route_not_found", "method_not_allowed")
    assert_problem(bare.put("/collections/c", {"model": name}), 422, "invalid_request")


@pytest.mark.parametrize("name", ["a", "0", "A.b_c-d", "a" * 64, "items", "search"])
def test_names_that_are_allowed(bare, name):
    assert bare.request("PUT", f"/models/{name}", content=MODEL_FILE).status_code == 201
    assert bare.put(f"/collections/{name}", {"model": name}).status_code == 201
    bare.ok("POST", f"/collections/{name}/index", {"items": [item(0)]})
    assert len(bare.ok("POST", f"/collections/{name}/search", {"query_id": "item-0", "filter": {}})["results"]) == 0
    assert bare.ok("GET", f"/collections/{name}/items/item-0")["id"] == "item-0"


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100, len(MODEL_FILE) - 1])
def test_cut_model_files_are_refused(bare, size):
    response = bare.request("PUT", "/models/m", content=MODEL_FILE[:size])
    assert_problem(response, 422 if size else 400, "model_truncated" if size else "empty_body")


@pytest.mark.parametrize("position", range(0, len(MODEL_FILE), len(MODEL_FILE) // 60))
def test_model_files_with_a_flipped_bit_are_refused(bare, position):
    damaged = bytearray(MODEL_FILE)
    damaged[position] ^= 0x10
    response = bare.request("PUT", "/models/m", content=bytes(damaged))
    assert response.status_code == 422, response.text
    assert response.json()["code"].startswith("model_")
    assert bare.ok("GET", "/models") == {"models": []}
