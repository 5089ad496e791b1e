"""Errors: one shape on all routes, stable codes, the culprit by name, and nothing stored."""

import base64
import inspect
import logging
import re

import numpy as np
import pytest

from ccq_core import CCQ
from ccq_core import errors as core
from service import errors
from service.places import instead
from service.problems import INTERNAL, KINDS, NO_METHOD, NO_ROUTE, kind_of
from service.store.sqlite import SQLiteStore
from tests.service.harness import MODEL_FILE, PAIRS, InProcess, assert_problem, features, fill, item


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    """The service with 60 items, for requests that must not change it."""
    service = InProcess(tmp_path_factory.mktemp("steady") / "data")
    service.create()
    fill(service)
    yield service
    service.close()


ERRORS = [cls for _, cls in inspect.getmembers(core, inspect.isclass) if issubclass(cls, core.CCQError)]
SERVED = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.ServiceError)
    and not issubclass(cls, errors.StartError)
    and cls is not errors.UnknownNameError  # of its kinds alone
]


@pytest.mark.parametrize("error", ERRORS + SERVED, ids=lambda cls: cls.__name__)
def test_every_error_has_an_entry_of_its_own(error):
    assert error in KINDS


def test_a_code_has_one_status_and_one_title():
    kinds = [*KINDS.values(), NO_ROUTE, NO_METHOD]
    assert len({kind.code for kind in kinds}) == len(set(kinds))


def test_what_the_core_refuses_has_the_code_of_its_cause():
    cause = core.FeatureError("image", "no", 0)
    assert kind_of(errors.CoreInputError(cause, errors.Fault("#", "no"))).code == "invalid_features"
    assert kind_of(ValueError("x")) is INTERNAL


# -- requests that are wrong, and what is said about them ------------------------------------------------------------

NAN_VECTOR = base64.b64encode(np.full(12, np.nan, "<f4").tobytes()).decode()
DOUBLE = base64.b64encode(np.ones(12).tobytes()).decode()
PARTLY_NAN = base64.b64encode(np.array([1.0] * 11 + [np.nan], "<f4").tobytes()).decode()


def with_image(vector, index=1):
    """A request to /index whose `index`-th item has this image."""
    items = [item(i) for i in range(3)]
    items[index]["features"]["image"] = vector
    return {"items": items}


BAD_FEATURES = [
    ([0.5] * 11, "invalid_features", "expected 12 numbers, got 11 (model tiny)"),
    ([0.5] * 13, "invalid_features", "expected 12 numbers, got 13 (model tiny)"),
    ([], "invalid_features", "expected 12 numbers, got 0"),
    ([0.5] * 11 + [True], "invalid_features", "number 11: expected a number, got True"),
    ([0.5] * 11 + ["1"], "invalid_features", "number 11: expected a number, got '1'"),
    ([0.5] * 11 + [None], "invalid_features", "number 11: expected a number, got None"),
    ([[0.5] * 12], "invalid_features", "number 0: expected a number, got [0.5, 0.5, 0.5, ...]"),
    ([0.5] * 11 + [1e300], "invalid_features", "number 11: 1e+300 is infinite or beyond 1e15"),
    ([0.5] * 11 + [10**19], "invalid_features", "number 11: 1e+19 is infinite or beyond 1e15"),
    (None, "invalid_features", "expected a list of 12 numbers or a base64 string, got None"),
    ({"0": 1}, "invalid_features", "expected a list of 12 numbers or a base64 string, got {'0': 1}"),
    (0.5, "invalid_features", "expected a list of 12 numbers or a base64 string, got 0.5"),
    ("", "invalid_features", "expected 12 numbers, got 0"),
    (DOUBLE, "invalid_features", "expected 12 numbers, got 24, or float64: base64 is of float32"),
    ("AAAA", "invalid_features", "expected 48 bytes of float32 in base64, got 3, which is no multiple of 4"),
    ("AAAAAA==", "invalid_features", "expected 12 numbers, got 1"),
    ("é" * 64, "invalid_features", "expected numbers or base64, got"),
    ("AAA!", "invalid_features", "expected numbers or base64, got 'AAA!'"),
    (NAN_VECTOR, "invalid_features", "every number is NaN"),
    (PARTLY_NAN, "invalid_features", "number 11: NaN in a row that is not all NaN"),
]


@pytest.mark.parametrize(("vector", "code", "words"), BAD_FEATURES)
def test_features_that_cannot_be_used(steady, vector, code, words):
    index, search = with_image(vector), {"queries": [features(0), {"image": vector}]}
    for path, body, place in (
        ("/index", index, ("#/items/1/features/image", "items[1].features.image: ")),
        ("/search", search, ("#/queries/1/image", "queries[1].image: ")),
        ("/search", {"query": {"image": vector}}, ("#/query/image", "query.image: ")),
    ):
        problem = assert_problem(steady.post(path, body), 422, code)
        assert [fault["pointer"] for fault in problem["errors"]] == [place[0]]
        assert problem["detail"].startswith(place[1] + words)
    assert_unchanged(steady)


def test_features_that_the_model_cannot_map_are_named_too(filled):
    """What the core finds only while mapping, in a batch of which only some items have the modality."""
    near_zero = {"image": PAIRS["image"] / 1000, "text": PAIRS["text"]}
    far = CCQ(bits=8, iterations=1, preprocess="zscore", mapping="procrustes").fit(near_zero)
    filled.request("PUT", "/models/far", content=far.to_bytes())
    filled.put("/collections/far", {"model": "far"})
    items = [item(0), item(1, "text"), item(2), {"id": "x", "features": {"image": [9e14, -9e14] * 6}}]
    problem = assert_problem(filled.post("/collections/far/index", {"items": items}), 422, "invalid_features")
    assert problem["errors"][0]["pointer"] == "#/items/3/features/image"
    assert problem["detail"].endswith("numbers too far outside the training data to be mapped (model far)")
    queries = {"queries": [item["features"] for item in items]}
    problem = assert_problem(filled.post("/collections/far/search", queries), 422, "invalid_features")
    assert problem["errors"][0]["pointer"] == "#/queries/3/image"
    assert filled.ok("GET", "/collections/far")["items"] == 0


BAD_INDEX = [
    ({}, "invalid_request", "#/items", "items: missing"),
    ({"items": []}, "invalid_request", "#/items", "items: expected at least one"),
    ({"items": {}}, "invalid_request", "#/items", "items: expected a list"),
    ({"items": [item(0)], "more": 1}, "invalid_request", "#/more", "more: unknown key, expected items"),
    ({"items": [{"features": features(0)}]}, "invalid_request", "#/items/0/id", "items[0].id: missing"),
    ({"items": [{"id": "a"}]}, "invalid_request", "#/items/0/features", "items[0].features: missing"),
    ({"items": [{"id": "a", "features": {}}]}, "invalid_request", "#/items/0/features", "items[0].features: "),
    (
        {"items": [{**item(0), "vector": []}]},
        "invalid_request",
        "#/items/0/vector",
        "items[0].vector: unknown key, expected id, features, codes, payload",
    ),
    ({"items": [{**item(0), "payload": []}]}, "invalid_request", "#/items/0/payload", "items[0].payload: "),
    ({"items": [{**item(0), "payload": "x"}]}, "invalid_request", "#/items/0/payload", "items[0].payload: "),
    ({"items": [{**item(0), "id": ""}]}, "invalid_request", "#/items/0/id", "items[0].id: expected 1 to 512 bytes"),
    ({"items": [{**item(0), "id": "é" * 257}]}, "invalid_request", "#/items/0/id", "items[0].id: expected 1 to 512"),
    ({"items": [{**item(0), "id": True}]}, "invalid_request", "#/items/0/id", "items[0].id: expected a string or an"),
    ({"items": [{**item(0), "id": 1.0}]}, "invalid_request", "#/items/0/id", "items[0].id: expected a string or an"),
    ({"items": [{**item(0), "id": None}]}, "invalid_request", "#/items/0/id", "items[0].id: expected a string or an"),
    (
        {"items": [item(0), {"id": "a", "features": {"sound/~": [1]}}]},
        "unknown_modality",
        "#/items/1/features/sound~1~0",
        "items[1].features['sound/~']: unknown modality, expected image, text (model tiny)",
    ),
    (
        {"items": [item(0), item(1), item(0)]},
        "duplicate_id",
        "#/items/0/id",
        "items[0].id and items[2].id: the same id twice, 'item-0'",
    ),
    (
        {"items": [{**item(0), "id": 5}, {**item(0), "id": "5"}]},
        "duplicate_id",
        "#/items/0/id",
        "items[0].id and items[1].id: the same id twice, '5'",
    ),
    (
        {"items": [{**item(0), "payload": {"x": "y" * 65536}}]},
        "invalid_request",
        "#/items/0/payload",
        "items[0].payload: expected at most 65536 bytes of JSON, got 65544",
    ),
]


@pytest.mark.parametrize(("body", "code", "pointer", "words"), BAD_INDEX)
def test_items_that_cannot_be_indexed(steady, body, code, pointer, words):
    problem = assert_problem(steady.post("/index", body), 422, code)
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["detail"].startswith(words)
    assert_unchanged(steady)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"filtre": {}}, "filtre: unknown key, did you mean 'filter'?"),
        ({"vector": [1]}, "vector: unknown key, expected query, "),
        ({"filter": {"price": {"lt": 3}}}, "filter.price: unknown key, expected must, should, must_not"),
        ({"filter": {"mustnot": []}}, "filter.mustnot: unknown key, did you mean 'must_not'?"),
        (
            {"filter": {"must": [{"key": "a", "range": {"less": 3}}]}},
            "filter.must[0].range.less: unknown key, expected gt, gte, lt, lte",
        ),
        ({"x" * 100_000: 1}, "['xxx"),
        ({f"x{i}": i for i in range(1000)}, "x0: unknown key, expected query, "),
    ],
)
def test_unknown_keys_are_told_with_those_that_there_are(steady, more, words):
    problem = assert_problem(steady.post("/search", {"query": features(1), **more}), 422, "invalid_request")
    assert problem["detail"].startswith(words)
    assert len(problem["errors"]) == 1
    assert len(problem["detail"]) < 400


def test_both_places_of_a_duplicate_id_are_named(steady):
    problem = assert_problem(steady.post("/index", {"items": [item(0), item(1), item(0)]}), 422, "duplicate_id")
    assert [fault["pointer"] for fault in problem["errors"]] == ["#/items/0/id", "#/items/2/id"]


BAD_SEARCH = [
    ({}, "invalid_request", "#", "expected exactly one of query, queries, query_id and query_by, got none"),
    ({"query": features(0), "query_id": "a"}, "invalid_request", "#", "expected exactly one of query, queries,"),
    ({"query": {}}, "invalid_request", "#/query", "query: expected at least one"),
    ({"queries": []}, "invalid_request", "#/queries", "queries: expected at least one"),
    ({"query": [1]}, "invalid_request", "#/query", "query: expected an object"),
    ({"query": {"sound": [1]}}, "unknown_modality", "#/query/sound", "query.sound: unknown modality"),
    ({"query": features(0), "limit": 0}, "invalid_request", "#/limit", "limit: input should be greater than or"),
    ({"query": features(0), "limit": 10_001}, "invalid_request", "#/limit", "limit: expected at most 10000, got 10001"),
    ({"query": features(0), "limit": "10"}, "invalid_request", "#/limit", "limit: input should be a valid integer"),
    ({"query": features(0), "limit": True}, "invalid_request", "#/limit", "limit: input should be a valid integer"),
    ({"queries": [features(0)] * 11, "limit": 10_000}, "invalid_request", "#/limit", "limit: expected at most 100000"),
    ({"queries": [features(0)] * 1001}, "invalid_request", "#/queries", "queries: expected at most 1000 queries"),
    ({"query": features(0), "metric": "l2"}, "invalid_request", "#/metric", "metric: input should be 'cosine' or"),
    ({"query": features(0), "database": "sound"}, "unknown_database", "#/database", "database: unknown database"),
    ({"query": features(0), "database": ["text", "x"]}, "unknown_database", "#/database/1", "database[1]: unknown"),
    ({"query": features(0), "database": []}, "invalid_request", "#/database", "database: expected at least one name"),
    (
        {"query": features(0), "database": ["text", "text"]},
        "invalid_request",
        "#/database",
        "database: expected at least one name, and each once",
    ),
    ({"query": features(0), "database": 1}, "invalid_request", "#/database", "database: expected a list"),
]


@pytest.mark.parametrize(("body", "code", "pointer", "words"), BAD_SEARCH)
def test_searches_that_make_no_sense(steady, body, code, pointer, words):
    problem = assert_problem(steady.post("/search", body), 422, code)
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["detail"].startswith(words)


@pytest.mark.parametrize(
    ("body", "pointer"), [({}, "#"), ({"ids": [], "filter": {}}, "#"), ({"ids": [1.5]}, "#/ids/0"), ({"id": 1}, "#/id")]
)
def test_deletions_that_make_no_sense(steady, body, pointer):
    problem = assert_problem(steady.post("/items/delete", body), 422, "invalid_request")
    assert pointer in [fault["pointer"] for fault in problem["errors"]]
    assert_unchanged(steady)


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/items?limit=0", "?limit"),
        ("/items?limit=10001", "?limit"),
        ("/items?limit=x", "?limit"),
        ("/items?cursor=AAAA", "?cursor"),
        ("/items?cursor=%F0%9F%90%88", "?cursor"),
        ("/items/", "{id}"),
        ("/items/%FF", "{id}"),
        ("/items/" + "x" * 513, "{id}"),
        ("/collections/a%20b", "{collection}"),
        ("/collections/-a/items", "{collection}"),
        ("/collections/" + "a" * 65, "{collection}"),
        ("/models/.hidden", "{model}"),
        ("/models/m?file=maybe", "?file"),
    ],
)
def test_parameters_that_make_no_sense(steady, path, pointer):
    problem = assert_problem(steady.get(path), 422, "invalid_request")
    assert [fault["pointer"] for fault in problem["errors"]] == [pointer]


def assert_unchanged(service):
    """The 60 items of `fill` are there, in memory, on disk, and at the same version."""
    info = service.ok("GET", "/collections/default")
    assert (info["items"], info["databases"]) == (60, {"image": 40, "text": 40, "pair": 20})
    collection = service.catalog.collection("default")
    with collection.read() as (view, snapshot):
        assert view.version == snapshot.version == 1
        assert snapshot.count() == 60


# -- bodies ----------------------------------------------------------------------------------------------------------

JSON_ROUTES = [
    ("POST", "/index"),
    ("POST", "/search"),
    ("POST", "/facets"),
    ("POST", "/items/delete"),
    ("POST", "/collections/default/index"),
    ("POST", "/collections/default/search"),
    ("POST", "/collections/default/facets"),
    ("POST", "/collections/default/items/delete"),
    ("PUT", "/collections/new"),
]
BAD_BODIES = [
    (b"", 400, "empty_body", "expected a body"),
    (b"{", 400, "invalid_json", "not valid JSON"),
    (b'{"items": [NaN]}', 400, "invalid_json", "NaN and Infinity are not JSON: line 1 column 12"),
    (b'{"items": [1, -Infinity]}', 400, "invalid_json", "NaN and Infinity are not JSON: line 1 column 16"),
    (b'{"items": [1e999]}', 400, "invalid_json", "not valid JSON: number is infinity"),
    (b'{"items": "\xff"}', 400, "invalid_json", "not valid JSON"),
    (b'{"items": "\\ud800"}', 400, "invalid_json", "not valid JSON"),
    (b"\xef\xbb\xbf{}", 400, "invalid_json", "not valid JSON"),
    ('{"items": []}'.encode("utf-16"), 400, "invalid_json", "not valid JSON"),
    (b'{"a": 1} x', 400, "invalid_json", "not valid JSON"),
    (b"[" * 100_000 + b"]" * 100_000, 400, "invalid_json", "not valid JSON: depth limit exceeded"),
    (b"[]", 422, "invalid_request", "expected an object, got []"),
    (b"null", 422, "invalid_request", "expected an object, got None"),
    (b'"x"', 422, "invalid_request", "expected an object, got 'x'"),
]


@pytest.mark.parametrize(("method", "path"), JSON_ROUTES)
@pytest.mark.parametrize(("body", "status", "code", "words"), BAD_BODIES)
def test_bodies_that_are_no_json_object(steady, method, path, body, status, code, words):
    response = steady.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert assert_problem(response, status, code)["detail"].startswith(words)
    assert_unchanged(steady)


@pytest.mark.parametrize(("method", "path"), JSON_ROUTES)
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "jsonapplication/json"])
def test_bodies_that_are_not_declared_to_be_json(steady, method, path, kind):
    response = steady.request(method, path, content=b"{}", headers={} if kind is None else {"Content-Type": kind})
    assert "application/json" in assert_problem(response, 415, "unsupported_media_type")["detail"]


@pytest.mark.parametrize(("method", "path"), [*JSON_ROUTES, ("PUT", "/models/m")])
def test_compressed_bodies_are_not_taken_for_damaged_ones(steady, method, path):
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    response = steady.request(method, path, content=b"\x1f\x8b", headers=headers)
    problem = assert_problem(response, 415, "unsupported_encoding")
    assert problem["detail"] == "Content-Encoding: expected none, got 'gzip'; send the body as it is"
    plain = steady.request(method, path, content=b"{", headers={**headers, "Content-Encoding": "Identity"})
    assert plain.status_code in (400, 422)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/problem+json"])
def test_json_by_other_names(filled, kind):
    body = b'{"ids": []}'
    assert filled.request("POST", "/items/delete", content=body, headers={"Content-Type": kind}).status_code == 200


async def _pieces(size, count, read):
    for _ in range(count):
        read.append(size)
        yield b" " * size


@pytest.mark.parametrize(("method", "path"), [*JSON_ROUTES, ("PUT", "/models/m")])
def test_bodies_that_are_too_long(tmp_path, method, path):
    service = InProcess(tmp_path, max_body_bytes=10_000, max_model_bytes=10_000)
    try:
        read = []
        if not path.startswith("/models"):
            service.app.state.runtime.store.put_model("tiny", MODEL_FILE)
            service.put("/collections/default", {"model": "tiny"})
        kind = {"Content-Type": "application/json"}
        streamed = service.request(method, path, content=_pieces(1000, 1000, read), headers=kind)
        assert "at most 10000 bytes" in assert_problem(streamed, 413, "body_too_large")["detail"]
        assert len(read) == 11  # the rest was not even read
        whole = service.request(method, path, content=b" " * 10_001, headers=kind)
        assert "got one of 10001" in assert_problem(whole, 413, "body_too_large")["detail"]
        lying = {**kind, "Content-Length": "9" * 5000}
        assert_problem(service.request(method, path, content=b"{}", headers=lying), 413, "body_too_large")
        fitting = service.request(method, path, content=b" " * 10_000, headers=kind)
        assert fitting.status_code in (400, 422)
    finally:
        service.close()


def test_a_client_that_goes_away_changes_nothing(steady):
    sent = []

    async def receive():
        return {"type": "http.disconnect"} if sent else sent.append(1) or {"type": "http.request", "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/index",
        "raw_path": b"/index",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    steady.run(steady.app(scope, receive, send))
    assert sent[1]["status"] == 400
    assert_unchanged(steady)


# -- all routes ------------------------------------------------------------------------------------------------------


def routes(app):
    """Method and path of each route, from the OpenAPI document."""
    return [(method.upper(), path) for path, found in app.openapi()["paths"].items() for method in found]


def test_unknown_collections_and_models_on_every_route(bare):
    tried = 0
    for method, path in routes(bare.app):
        concrete = re.sub(r"\{(collection|model|snapshot|job|alias)\}", "nowhere", path.replace("{id}", "x"))
        whole = (
            "/livez",
            "/readyz",
            "/version",
            "/caller",
            "/limits",
            "/metrics",
            "/collections",
            "/aliases",
            "/models",
            "/snapshots",
            "/jobs",
        )
        if path in whole or method == "PUT" or path.endswith("/train"):
            continue
        first = path.split("/")[1]
        own = {
            "models": "model_not_found",
            "snapshots": "snapshot_not_found",
            "jobs": "job_not_found",
            "aliases": "alias_not_found",
        }
        code = own.get(first, "collection_not_found")
        body = {"content": b"{}", "headers": {"Content-Type": "application/json"}} if method == "POST" else {}
        problem = assert_problem(bare.request(method, concrete, **body), 404, code)
        assert ("default" if "{" not in path or path == "/items/{id}" else "no") in problem["detail"]
        tried += 1
    assert tried == 29
    problem = assert_problem(bare.put("/collections/c", {"model": "nothing"}), 404, "model_not_found")
    assert problem["errors"][0]["pointer"] == "#/model"


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ([], ""),
        (["photos"], " (there is 'photos')"),
        (list("abcde"), " (there are 'a', 'b', 'c', 'd', 'e')"),
        (list("abcdef"), ""),
        ([*"abcdef", "article", "articles"], " (there are 'articles', 'article')"),
        (["articles", "photos"], " (there is 'articles')"),
        ([f"c{i}" for i in range(200)] + ["articles"], ""),  # not looked at
    ],
)
def test_a_name_that_there_is_not_is_told_with_those_meant(there, words):
    assert instead("artciles", iter(there)) == words


def test_models_and_collections_that_there_are_are_told(bare):
    bare.create("photos")
    for method, path, body in (
        ("GET", "/collections/fotos", None),
        ("POST", "/collections/fotos/search", {"query": {}}),
        ("DELETE", "/collections/fotos", None),
    ):
        problem = assert_problem(bare.request(method, path, json=body), 404, "collection_not_found")
        assert problem["detail"] == "no collection 'fotos' (there is 'photos'); PUT /collections/fotos creates it"
    for method, path, body in (
        ("GET", "/models/tony", None),
        ("GET", "/models/tony?file=true", None),
        ("DELETE", "/models/tony", None),
        ("PUT", "/collections/c", {"model": "tony"}),
        ("POST", "/collections/photos/reencode", {"model": "tony"}),
    ):
        problem = assert_problem(bare.request(method, path, json=body), 404, "model_not_found")
        assert problem["detail"] == "no model 'tony' (there is 'tiny'); PUT /models/tony uploads it"


def test_paths_and_methods_that_do_not_exist(steady):
    assert "'/nope'" in assert_problem(steady.get("/nope"), 404, "route_not_found")["detail"]
    assert_problem(steady.get("/items/../../etc/passwd?x"), 404, "route_not_found")
    assert_problem(steady.get("/search/"), 404, "route_not_found")
    for _, path in routes(steady.app):
        response = steady.request("PATCH", path.replace("{", "").replace("}", ""))
        assert_problem(response, 405, "method_not_allowed")
        assert response.headers["allow"]


def test_the_request_id_is_the_clients_if_it_is_sane(steady):
    for given in ("abc-123", "a" * 128, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"):
        assert steady.get("/livez", headers={"X-Request-Id": given}).headers["x-request-id"] == given
    for given in ("", "a b", "a" * 129, "é".encode(), "-x", 'a"b'):
        made = steady.get("/livez", headers={"X-Request-Id": given}).headers["x-request-id"]
        assert len(made) == 32
        assert made != given
    assert steady.get("/livez").headers["x-request-id"] != steady.get("/livez").headers["x-request-id"]
    given = {"X-Request-Id": "mine"}
    assert assert_problem(steady.get("/nope", headers=given), 404, "route_not_found")["request_id"] == "mine"


@pytest.mark.parametrize("where", ["upsert", "snapshot"])
def test_an_unforeseen_error_is_logged_and_not_shown(steady, monkeypatch, caplog, where):
    def fail(*_, **__):
        raise ZeroDivisionError("secret words")

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteStore, where, fail)
        caplog.clear()
        if where == "upsert":
            response = steady.post("/index", {"items": [item(0)]}, headers={"X-Request-Id": "r1"})
        else:
            response = steady.post("/search", {"query": features(0)}, headers={"X-Request-Id": "r1"})
    problem = assert_problem(response, 500, "internal_error")
    assert "secret" not in response.text
    assert problem["request_id"] == "r1"
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in logged] == ["request r1 failed"]
    assert logged[0].exc_info[0] is ZeroDivisionError
    assert_unchanged(steady)


def test_what_a_client_sent_is_quoted_only_in_part(steady):
    huge = "x" * 1_000_000
    for body in (
        {"items": [{**item(0), "id": huge}]},
        {"items": [{"id": "a", "features": {huge: [1]}}]},
        {"items": [{"id": "a", "features": {"image": [huge] * 12}}]},
        {"items": [{"id": "a", "features": {"image": huge}}]},
        {huge: 1},
    ):
        response = steady.post("/index", body)
        assert response.status_code == 422
        assert len(response.content) < 10_000
    assert len(steady.post("/search", {"query_id": "é" * 256}).content) < 10_000
    assert (
        len(assert_problem(steady.post("/index", {"items": [{"features": 1}] * 500}), 422, "invalid_request")["errors"])
        == 2
    )
