"""API keys: what is on disk, who may do what on every route, and keys that change while the server runs."""

import json
import logging
import os
import re
import stat

import pytest
from fastapi.routing import iter_route_contexts

from service import errors, keys
from service.server import serve
from service.settings import Settings
from tests.service.harness import MODEL_FILE, InProcess, assert_problem, features, fill, item

OPEN = {"/", "/livez", "/readyz", "/version", "/docs", "/docs/{name}", "/ui", "/ui/{name}", "/openapi.json"}
ITEMS = {
    ("POST", "/facets"): "search",
    ("POST", "/index"): "write",
    ("POST", "/search"): "search",
    ("GET", "/items"): "search",
    ("POST", "/items/list"): "search",
    ("POST", "/items/delete"): "write",
    ("GET", "/items/{id}"): "search",
    ("DELETE", "/items/{id}"): "write",
    ("PUT", "/items/{id}/payload"): "write",
}
SCOPES = {
    **ITEMS,
    **{(method, "/collections/{collection}" + path): scope for (method, path), scope in ITEMS.items()},
    ("GET", "/collections"): "search",
    ("GET", "/collections/{collection}"): "search",
    ("PUT", "/collections/{collection}"): "admin",
    ("DELETE", "/collections/{collection}"): "admin",
    ("POST", "/collections/{collection}/reencode"): "admin",
    ("GET", "/collections/{collection}/usage"): "search",
    ("GET", "/collections/{collection}/map"): "search",
    ("GET", "/aliases"): "search",
    ("GET", "/aliases/{alias}"): "search",
    ("PUT", "/aliases/{alias}"): "admin",
    ("DELETE", "/aliases/{alias}"): "admin",
    ("GET", "/models"): "search",
    ("GET", "/models/{model}"): "search",
    ("PUT", "/models/{model}"): "admin",
    ("DELETE", "/models/{model}"): "admin",
    ("POST", "/models/{model}/train"): "admin",
    ("POST", "/snapshots"): "admin",
    ("GET", "/snapshots"): "admin",
    ("GET", "/snapshots/{snapshot}"): "admin",
    ("DELETE", "/snapshots/{snapshot}"): "admin",
    ("GET", "/jobs"): "admin",
    ("GET", "/jobs/{job}"): "admin",
    ("DELETE", "/jobs/{job}"): "admin",
    ("GET", "/caller"): None,
    ("GET", "/limits"): None,
    ("GET", "/metrics"): "admin",
}


def create_key(data, name, *scopes, collections=None):
    secret, key = keys.new(name, scopes, collections)
    with keys.changed(data) as known:
        known[name] = key
    return secret


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def secrets(data):
    """One key for each scope, by scope, and `of_c`: all of it, but for collection c alone."""
    made = {scope: create_key(data, f"for-{scope}", scope) for scope in ("search", "write", "admin")}
    return {**made, "of_c": create_key(data, "of-c", "admin", collections=("c",))}


@pytest.fixture
def guarded(data, secrets):
    """The service with those keys, and collections `default` and `c`; it asks as admin unless told otherwise."""
    service = InProcess(data)
    service.client.headers.update(bearer(secrets["admin"]))
    service.create()
    service.create("c", "other")
    fill(service)
    yield service
    service.close()


@pytest.fixture
def at_once(monkeypatch):
    """A change of the keys holds with the next request."""
    monkeypatch.setattr(keys, "CHECK_SECONDS", 0)


# -- the file --------------------------------------------------------------------------------------------------------


def test_a_key_looks_like_one_and_only_its_hash_is_on_disk(data):
    secret = create_key(data, "web", "search", "write", collections=("c",))
    assert re.fullmatch(r"ccq_[A-Za-z0-9_-]{43}", secret)
    file = data / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert secret not in text
    assert secret[4:] not in text
    (stored,) = json.loads(text)["keys"]
    assert stored["hash"] == keys.hashed(secret)
    assert (stored["name"], stored["scopes"], stored["collections"]) == ("web", ["search", "write"], ["c"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stored["created"])
    assert create_key(data, "web-2", "search") != secret


def test_the_file_is_private_whatever_the_umask_is(data):
    before = os.umask(0)
    try:
        create_key(data, "web", "search")
    finally:
        os.umask(before)
    assert stat.S_IMODE((data / "keys.json").stat().st_mode) == 0o600


def test_what_fails_while_keys_are_changed_changes_none(data):
    create_key(data, "web", "search")
    before = (data / "keys.json").read_bytes()

    def fail():
        with keys.changed(data) as known:
            known.clear()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (data / "keys.json").read_bytes() == before


DAMAGED = [
    (b"", "invalid JSON"),
    (b"{", "Invalid JSON"),
    (b'{"keys": [{}]}', "keys[0].name: Field required"),
    (b'{"keys": [], "more": 1}', "more: Extra inputs"),
    (b'{"keys": null}', "keys: "),
]


@pytest.mark.parametrize(("text", "words"), DAMAGED)
def test_a_damaged_file_does_not_start(data, text, words):
    data.mkdir()
    (data / "keys.json").write_bytes(text)
    with pytest.raises(errors.KeysFileError, match="is damaged") as refused:
        serve(Settings(data=data, port=0))
    assert words.lower() in str(refused.value).lower()
    assert str(data / "keys.json") in str(refused.value)
    assert "\n" not in str(refused.value)
    assert os.listdir(data) == ["keys.json"]  # no database was made


@pytest.mark.parametrize("what", ["name", "hash"])
def test_two_keys_that_are_one_are_damage(data, what):
    create_key(data, "a", "search")
    create_key(data, "b", "search")
    contents = json.loads((data / "keys.json").read_text())
    contents["keys"][1][what] = contents["keys"][0][what]
    (data / "keys.json").write_text(json.dumps(contents))
    with pytest.raises(errors.KeysFileError, match=f"two keys have the same {what}"):
        keys.read(data / "keys.json")


# -- who may do what -------------------------------------------------------------------------------------------------


def concrete(path):
    return (
        path.replace("{id}", "item-0")
        .replace("{collection}", "default")
        .replace("{model}", "tiny")
        .replace("{snapshot}", "x")
    )


def ask(service, method, path, headers):
    body = {"content": b"{}", "headers": {"Content-Type": "application/json", **headers}}
    return service.request(method, concrete(path), **(body if method in ("POST", "PUT") else {"headers": headers}))


def test_every_route_has_its_scope_here(bare):
    found = {
        (method, route.path_format)
        for route in iter_route_contexts(bare.app.routes)
        for method in route.methods
        if method != "HEAD"
    }
    assert found == set(SCOPES) | {("GET", path) for path in OPEN}


@pytest.mark.parametrize(("method", "path"), SCOPES)
def test_each_route_asks_for_its_scope(guarded, secrets, method, path):
    needed = SCOPES[method, path]
    guarded.client.headers.pop("Authorization")
    none = ask(guarded, method, path, {})
    assert_problem(none, 401, "unauthenticated")
    assert none.headers["www-authenticate"] == "Bearer"
    for scope in ("search", "write", "admin"):
        response = ask(guarded, method, path, bearer(secrets[scope]))
        if needed is None or scope in (needed, "admin"):
            assert response.status_code not in (401, 403), response.text
        else:
            problem = assert_problem(response, 403, "forbidden")
            assert f"scope {needed}" in problem["detail"]
            assert f"'for-{scope}' with {scope}" in problem["detail"]


@pytest.mark.parametrize("path", sorted(OPEN))
def test_what_is_open_needs_no_key(guarded, path):
    guarded.client.headers.pop("Authorization")
    assert guarded.get(path.replace("{name}", "index.html")).status_code in (200, 307)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer ccq_" + "A" * 43},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic dTpw"},
        {"Authorization": "Bearer \xff"},
        {"X-API-Key": "ccq_"},
        {"X-API-Key": ""},
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(guarded, headers):
    guarded.client.headers.pop("Authorization")
    response = guarded.get("/items", headers={name: value.encode("latin-1") for name, value in headers.items()})
    problem = assert_problem(response, 401, "unauthenticated")
    assert "AAAA" not in response.text
    assert "expected an API key" in problem["detail"]


def test_a_key_in_its_own_header(guarded, secrets):
    guarded.client.headers.pop("Authorization")
    assert guarded.get("/items", headers={"X-API-Key": secrets["search"]}).status_code == 200
    assert guarded.get("/items", headers={"authorization": f"bearer {secrets['search']}"}).status_code == 200


def test_a_wrong_key_comes_before_anything_else_that_is_wrong(guarded):
    guarded.client.headers.update(bearer("ccq_x"))
    for method, path in (("GET", "/items?limit=x"), ("GET", "/collections/a%20b"), ("POST", "/index")):
        assert_problem(guarded.request(method, path), 401, "unauthenticated")


def test_a_key_for_one_collection_sees_that_one_alone(guarded, secrets):
    mine = bearer(secrets["of_c"])
    for method, path in SCOPES:
        if "{collection}" in path or (method, path) in ITEMS:
            problem = assert_problem(ask(guarded, method, path, mine), 403, "forbidden")
            assert "collection 'default'" in problem["detail"]
            assert problem["errors"][0]["pointer"] == "/collections/default"
    listed = guarded.get("/collections", headers=mine).json()["collections"]
    assert [found["name"] for found in listed] == ["c"]
    assert guarded.post("/collections/c/index", {"items": [item(0)]}, headers=mine).status_code == 200
    assert guarded.post("/collections/c/search", {"query": features(0)}, headers=mine).status_code == 200
    assert list(guarded.get("/limits", headers=mine).json()["dimensions"]) == ["c"]
    assert guarded.request("DELETE", "/collections/c", headers=mine).status_code == 204
    assert guarded.ok("GET", "/collections/default")["items"] == 60


def test_a_key_for_one_collection_and_models(guarded, secrets):
    mine = bearer(secrets["of_c"])
    assert [model["name"] for model in guarded.get("/models", headers=mine).json()["models"]] == ["other"]
    assert guarded.get("/models/other?file=true", headers=mine).content == MODEL_FILE
    for method, path in (
        ("GET", "/models/tiny"),
        ("PUT", "/models/new"),
        ("DELETE", "/models/other"),
        ("GET", "/metrics"),
        ("POST", "/models/new/train"),
        ("POST", "/collections/c/reencode"),
        ("PUT", "/aliases/new"),
        ("DELETE", "/aliases/new"),
        ("GET", "/jobs"),
        ("GET", "/jobs/x"),
        ("DELETE", "/jobs/x"),
    ):
        problem = assert_problem(guarded.request(method, path, headers=mine), 403, "forbidden")
        assert "all collections" in problem["detail"]
    guarded.create("shared", "other")
    assert guarded.get("/models/other", headers=mine).json()["collections"] == ["c"]


def test_a_key_for_one_collection_is_not_told_what_else_there_is(guarded, secrets):
    mine = bearer(secrets["of_c"])
    guarded.request("DELETE", "/collections/c")
    for path in ("/collections/c", "/collections/c/items"):
        problem = assert_problem(guarded.get(path, headers=mine), 404, "collection_not_found")
        assert problem["detail"] == "no collection 'c'; PUT /collections/c creates it"
        assert "(there is 'default')" in guarded.get(path).json()["detail"]
    created = guarded.request("PUT", "/collections/c", json={"model": "tin"}, headers=mine)
    assert_problem(created, 404, "model_not_found")
    assert "tiny" not in created.text
    assert "other" not in created.text


def test_the_document_says_what_each_route_asks_for(bare):
    document = bare.app.openapi()
    assert set(document["components"]["securitySchemes"]) == {"bearer", "api_key"}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            asks = (method.upper(), path) in SCOPES
            scopes = [scope] if (scope := SCOPES.get((method.upper(), path))) else []
            expected = [{"bearer": scopes}, {"api_key": scopes}] if asks else None
            assert operation.get("security") == expected, (method, path)
            assert ("401" in operation["responses"]) == ("403" in operation["responses"]) == asks


# -- keys that change ------------------------------------------------------------------------------------------------


def test_without_keys_anyone_may_do_anything_until_there_is_one(service, at_once):
    assert service.get("/items").status_code == 200
    secret = create_key(service.settings.data, "web", "search")
    assert_problem(service.get("/items"), 401, "unauthenticated")
    assert service.get("/items", headers=bearer(secret)).status_code == 200


def test_a_running_server_follows_the_file(guarded, data, at_once):
    later = create_key(data, "later", "search")
    assert guarded.get("/items", headers=bearer(later)).status_code == 200
    with keys.changed(data) as known:
        del known["later"]
    assert_problem(guarded.get("/items", headers=bearer(later)), 401, "unauthenticated")


def test_the_file_is_looked_at_once_a_second_at_most(guarded, data, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(keys.time, "monotonic", lambda: now[0])
    ring = keys.KeyRing(data)
    later = create_key(data, "later", "search")
    assert ring.find(later) is None
    now[0] += 0.9
    assert ring.find(later) is None
    now[0] += 0.2
    assert ring.find(later).name == "later"


@pytest.mark.parametrize("damage", ["damaged", "gone", "a directory"])
def test_damage_leaves_a_running_server_its_keys(guarded, data, at_once, caplog, damage):
    file = data / "keys.json"
    file.unlink()
    if damage == "damaged":
        file.write_text("{")
    elif damage == "a directory":
        file.mkdir()
    for _ in range(3):
        assert guarded.get("/items").status_code == 200
    assert_problem(guarded.get("/items", headers=bearer("ccq_x")), 401, "unauthenticated")
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(logged) == 1
    assert str(file) in logged[0]
    assert "still those of before" in logged[0]


def test_without_its_last_key_a_server_lets_nobody_in(guarded, data, at_once):
    with keys.changed(data) as known:
        known.clear()
    assert_problem(guarded.get("/items"), 401, "unauthenticated")
    guarded._stop()
    guarded._open()
    guarded.wait_until_ready()
    assert guarded.get("/items").status_code == 200


# -- other machines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_without_keys_other_machines_are_not_served(data, host, would_serve):
    with pytest.raises(errors.OpenAddressError) as refused:
        serve(Settings(data=data, host=host, port=0))
    assert str(refused.value) == (
        f"host {host}: no API key: create one with `ccq keys create`, or set CCQ_OPEN=true to serve without"
    )
    assert not data.exists()


@pytest.fixture
def would_serve(monkeypatch):
    """Whether `serve` gets as far as to serve."""

    class ServedError(Exception):
        pass

    def run(*_, **__):
        raise ServedError

    monkeypatch.setattr("service.server._Server.run", run)

    def would_serve(settings):
        with pytest.raises(ServedError):
            serve(settings)

    return would_serve


def test_with_a_key_or_leave_they_are(data, would_serve):
    would_serve(Settings(data=data / "open", host="0.0.0.0", port=0, open=True))
    create_key(data / "keys", "web", "search")
    would_serve(Settings(data=data / "keys", host="0.0.0.0", port=0))
    would_serve(Settings(data=data / "loopback", host="127.0.0.1", port=0))


def test_metrics_can_be_open(data, secrets):
    service = InProcess(data, metrics_open=True)
    try:
        assert service.get("/metrics").status_code == 200
        assert_problem(service.get("/items"), 401, "unauthenticated")
    finally:
        service.close()
