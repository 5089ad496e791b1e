"""Collections and their encoders: named by clients, kept over restarts, and checked against the model."""

import threading

import pytest

from service.encoders.configuration import KINDS
from service.schemas.limits import Limits
from service.store import encodernames
from service.store.connection import SCHEMA_VERSION
from service.store.sqlite import SQLiteStore
from tests.service import reencoded
from tests.service.encoders.conftest import BOTH
from tests.service.encoders.fakes import TABLES, Letters, serving
from tests.service.harness import assert_problem, item

TEXT = {"query": {"text": "cab"}, "database": "text"}


def encoders_of(service, name="default"):
    return service.ok("GET", f"/collections/{name}")["encoders"]


def test_a_collection_shows_its_encoders_and_they_are_replaced_as_a_whole(encoding):
    assert encoders_of(encoding) == BOTH
    put = {"model": "tiny"}
    assert encoding.ok("PUT", "/collections/default", put)["encoders"] == BOTH
    assert encoding.ok("PUT", "/collections/default", {**put, "encoders": None})["encoders"] == BOTH
    only = {"text": "letters"}
    assert encoding.ok("PUT", "/collections/default", {**put, "encoders": only})["encoders"] == only
    encoding.ok("POST", "/search", TEXT)
    assert encoding.ok("PUT", "/collections/default", {**put, "encoders": {}})["encoders"] == {}
    assert_problem(encoding.post("/search", TEXT), 422, "invalid_features")


def test_a_new_collection_has_them_from_the_start(encoding):
    response = encoding.put("/collections/other", {"model": "tiny", "encoders": {"text": "letters"}})
    assert response.status_code == 201
    assert response.json()["encoders"] == {"text": "letters"}
    encoding.ok("POST", "/collections/other/index", {"items": [{"id": "a", "features": {"text": "cab"}}]})


def test_they_survive_a_restart_and_go_with_their_collection(encoding):
    before = encoding.ok("POST", "/search", TEXT)["results"]
    encoding.restart()
    assert encoders_of(encoding) == BOTH
    assert encoding.ok("POST", "/search", TEXT)["results"] == before
    encoding.delete("/collections/default")
    encoding.create()
    assert encoders_of(encoding) == {}


@pytest.mark.parametrize(
    ("encoders", "status", "code", "pointer", "words"),
    [
        ({"text": "clip"}, 404, "encoder_not_found", "#/encoders/text", "no encoder 'clip' on this server, expected"),
        ({"text": "../etc/passwd"}, 404, "encoder_not_found", "#/encoders/text", "'../etc/passwd'"),
        ({"text": "emoji"}, 422, "encoder_mismatch", "#/encoders/text", "8 dimensions, as the model has, got 'emoji'"),
        ({"image": "letters"}, 422, "encoder_mismatch", "#/encoders/image", "12 dimensions"),
        ({"sound": "letters"}, 422, "encoder_mismatch", "#/encoders/sound", "unknown modality, expected image, text"),
        ({"text": {"kind": "emoji"}}, 422, "invalid_request", "#/encoders", "'text': expected the name of an encoder"),
        (["letters"], 422, "invalid_request", "#/encoders", "expected an object"),
        (dict.fromkeys(map(str, range(10_000)), 1), 422, "invalid_request", "#/encoders", "'0': expected the name"),
    ],
)
def test_encoders_that_do_not_fit_are_refused(encoding, encoders, status, code, pointer, words):
    for name in ("default", "new"):
        response = encoding.put(f"/collections/{name}", {"model": "tiny", "encoders": encoders})
        problem = assert_problem(response, status, code)
        assert words in problem["detail"]
        assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert encoders_of(encoding) == BOTH
    assert_problem(encoding.get("/collections/new"), 404, "collection_not_found")


def test_an_unknown_model_comes_first(encoding):
    response = encoding.put("/collections/new", {"model": "nothing", "encoders": {"text": "letters"}})
    assert_problem(response, 404, "model_not_found")


def test_limits_list_the_encoders(encoding):
    known = encoding.ok("GET", "/limits")
    Limits.model_validate(known)
    emoji = {"takes": "text", "dim": 128}
    assert known["encoders"] == {
        "bytes": {"takes": "image", "dim": 12},
        "emoji": emoji,
        "letters": {"takes": "text", "dim": 8},
    }
    assert known["max_text_chars"] == 10_000


# -- encoders that are there no more ---------------------------------------------------------------------------------


class Wider(Letters):
    dim = 9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file, patch: file.write_text(""), "no encoder 'letters' on this server, expected emoji"),
        (lambda file, patch: patch.setitem(KINDS, "letters", Wider), "expected an encoder of 8 dimensions"),
    ],
)
def test_a_missing_encoder_fails_alone(encoding, tmp_path, monkeypatch, caplog, change, words):
    change(tmp_path / "encoders.toml", monkeypatch)
    encoding.restart()
    assert encoders_of(encoding) == BOTH
    assert words in caplog.text
    for value in ("cab", {"text": "cab"}, {"base64": "AAAA"}):
        problem = assert_problem(encoding.post("/search", {"query": {"text": value}}), 500, "encoder_failed")
        assert words in problem["detail"]
        assert "CCQ_ENCODERS" in problem["detail"]
    encoding.ok("POST", "/search", {"query": {"text": [1.0] * 8}})  # features need none
    encoding.ok("POST", "/index", {"items": [item(1)]})
    (tmp_path / "encoders.toml").write_text(TABLES)
    monkeypatch.setitem(KINDS, "letters", Letters)
    encoding.restart()
    encoding.ok("POST", "/search", TEXT)


# -- other models, other moments -------------------------------------------------------------------------------------


def test_they_stay_when_the_collection_is_encoded_anew(tmp_path, monkeypatch):
    service = serving(tmp_path, monkeypatch)
    try:
        reencoded.upload(service)
        service.ok("PUT", "/collections/default", {"model": "tiny", "keep": "float16", "encoders": BOTH})
        service.ok("POST", "/index", {"items": [{"id": "a", "features": {"text": "cab"}}, item(1)]})
        service.catalog.reencode(service.catalog.collection("default"), "other", lambda *_: None, lambda: None)
        assert service.ok("GET", "/collections/default")["model"] == "other"
        assert encoders_of(service) == BOTH
        assert service.ok("POST", "/search", {**TEXT, "limit": 1})["results"][0]["id"] == "a"
    finally:
        service.close()


def test_encoders_that_are_set_while_the_collection_loads_are_its_own(encoding, monkeypatch):
    catalog = encoding.catalog
    entry = catalog.entry("default")
    loaded, reached, go_on = entry.collection, threading.Event(), threading.Event()
    entry.collection = None

    def slowly(*args):
        reached.set()
        assert go_on.wait(10)
        return loaded

    monkeypatch.setattr("service.catalog.Collection", slowly)
    loader = threading.Thread(target=catalog._load, args=(entry,))
    loader.start()
    assert reached.wait(10)
    catalog.create_collection("default", "tiny", encoders={"text": "letters"})
    go_on.set()
    loader.join()
    assert set(catalog.collection("default").encoders) == {"text"}


def test_an_encoder_of_a_modality_that_the_model_lacks_is_left_out(encoding, caplog):
    """As it may be where the model was replaced while the collection was made."""
    record = encoding.catalog.entry("default").record
    encoding.catalog._store.set_encoders(record, {"text": "letters", "sound": "letters"})
    encoding.restart()
    assert "'sound': the model has none of this name" in caplog.text
    encoding.ok("POST", "/search", TEXT)


def test_a_database_of_the_version_before_gets_the_table(tmp_path, model_path):
    store = SQLiteStore(tmp_path)
    store.put_model("m", model_path.read_bytes())
    record, _ = store.create_collection("c", "m")
    assert SCHEMA_VERSION >= 7
    store._connection.execute("DROP TABLE encoders; PRAGMA user_version = 6")
    store.close()
    store = SQLiteStore(tmp_path)
    assert store.encoders(record) == {}
    store.set_encoders(record, {"text": "a"})
    assert store.encoders(record) == {"text": "a"}
    with store._read() as db:
        assert encodernames.of(db, record) == {"text": "a"}
    store.drop_collection(record)
    assert store.encoders(record) == {}
    store.close()
