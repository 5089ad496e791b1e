"""Models, collections, probes."""

import gc

import numpy as np
import pytest

from ccq_core import CCQ, __version__
from service.collection import Collection
from service.schemas.admin import CollectionInfo, CollectionList, ModelInfo, ModelList
from service.store.sqlite import SQLiteStore
from tests.service.harness import MODEL, MODEL_FILE, PAIRS, assert_problem, features, item

OTHER = CCQ(bits=8, iterations=2).fit({"sound": PAIRS["text"]})


def upload(service, name, content):
    return service.request("PUT", f"/models/{name}", content=content)


def test_a_model_is_uploaded_described_and_given_back(bare):
    response = upload(bare, "wiki-32", MODEL_FILE)
    assert response.status_code == 201
    info = response.json()
    ModelInfo.model_validate(info)
    assert info["modalities"] == {"image": {"dim": 12, "weight": 1.0}, "text": {"dim": 8, "weight": 5.0}}
    assert info["databases"] == ["image", "text", "pair"]
    assert (info["bits"], info["metric"], info["size"]) == (16, "cosine", len(MODEL_FILE))
    assert (info["dim"], info["losses"]) == (MODEL.codebooks_.shape[2], MODEL.losses_)
    assert bare.ok("GET", "/models/wiki-32") == info
    assert bare.ok("GET", "/models") == {"models": [info]}
    ModelList.model_validate(bare.ok("GET", "/models"))
    file = bare.get("/models/wiki-32", params={"file": "true"})
    assert file.headers["content-type"] == "application/octet-stream"
    assert file.content == MODEL_FILE
    assert bare.delete("/models/wiki-32").status_code == 204
    assert_problem(bare.get("/models/wiki-32"), 404, "model_not_found")
    assert_problem(bare.get("/models/wiki-32?file=true"), 404, "model_not_found")
    assert_problem(bare.delete("/models/wiki-32"), 404, "model_not_found")


def test_the_same_file_again_changes_nothing_and_another_replaces_it_while_unused(bare):
    assert upload(bare, "m", MODEL_FILE).status_code == 201
    assert upload(bare, "m", MODEL_FILE).status_code == 200
    response = upload(bare, "m", OTHER.to_bytes())
    assert response.status_code == 200
    assert response.json()["databases"] == ["sound"]


def test_a_model_in_use_stays(filled):
    assert upload(filled, "tiny", MODEL_FILE).status_code == 200
    for response in (upload(filled, "tiny", OTHER.to_bytes()), filled.delete("/models/tiny")):
        problem = assert_problem(response, 409, "model_in_use")
        assert "'default'" in problem["detail"]
    assert filled.get("/models/tiny?file=true").content == MODEL_FILE
    assert filled.ok("GET", "/models/tiny")["collections"] == ["default"]
    assert filled.delete("/collections/default").status_code == 204
    assert filled.delete("/models/tiny").status_code == 204


def test_models_that_no_collection_uses_are_not_kept_in_memory(filled, monkeypatch):
    def in_memory():
        gc.collect()
        return sum(type(thing) is CCQ for thing in gc.get_objects())

    before = in_memory()
    for i in range(5):
        assert upload(filled, f"m{i}", MODEL_FILE).status_code == 201
        assert filled.ok("GET", f"/models/m{i}")["bits"] == 16
    filled.create("other")
    assert len(filled.ok("GET", "/models")["models"]) == 6
    assert in_memory() == before
    assert filled.catalog.collection("other").view.coder.model is filled.catalog.collection("default").view.coder.model
    with monkeypatch.context() as patch:  # what is known of a file is not read from it again
        patch.delattr(CCQ, "from_bytes")
        assert len(filled.ok("GET", "/models")["models"]) == 6


def test_what_is_known_of_models_is_bounded(bare, monkeypatch):
    monkeypatch.setattr("service.traits._MOST_KNOWN", 1)
    upload(bare, "a", MODEL_FILE)
    upload(bare, "b", OTHER.to_bytes())
    for _ in range(2):
        assert [model["bits"] for model in bare.ok("GET", "/models")["models"]] == [16, 8]
    assert len(bare.catalog._traits._known) == 1


def test_a_model_that_is_replaced_and_put_back_while_it_is_described(bare, monkeypatch):
    upload(bare, "m", MODEL_FILE)
    first = bare.ok("GET", "/models/m")
    bare.restart()
    original = SQLiteStore.model_file

    def model_file(store, name):
        store.put_model(name, OTHER.to_bytes())
        try:
            return original(store, name)
        finally:
            store.put_model(name, MODEL_FILE)

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteStore, "model_file", model_file)
        seen = bare.ok("GET", "/models/m")
    assert (seen["bits"], seen["checksum"] == first["checksum"]) == (8, False)  # the one or the other, not of both
    now = bare.ok("GET", "/models/m")
    assert (now["bits"], now["checksum"]) == (16, first["checksum"])
    assert bare.put("/collections/default", {"model": "m"}).status_code == 201
    assert bare.ok("POST", "/index", {"items": [item(0)]})["indexed"] == 1


@pytest.mark.parametrize("owner", [Collection, CCQ])
@pytest.mark.parametrize("then", ["create", "delete", "restart"])
def test_a_collection_that_fails_just_after_it_was_made(bare, monkeypatch, owner, then):
    upload(bare, "tiny", MODEL_FILE)
    with monkeypatch.context() as patch:

        def fail(*_):
            raise MemoryError

        patch.setattr(owner, "_load" if owner is Collection else "from_bytes", fail)
        assert_problem(bare.put("/collections/default", {"model": "tiny"}), 500, "internal_error")
        assert_problem(bare.put("/collections/default", {"model": "tiny"}), 500, "internal_error")
    assert bare.ok("GET", "/collections/default")["state"] == "failed"
    assert_problem(bare.get("/items"), 503, "collection_failed")
    if then == "restart":
        bare.restart()
    elif then == "delete":
        assert bare.delete("/collections/default").status_code == 204
    assert bare.put("/collections/default", {"model": "tiny"}).status_code == (201 if then == "delete" else 200)
    assert bare.ok("GET", "/collections/default")["state"] == "ready"
    assert bare.ok("POST", "/index", {"items": [item(0)]})["indexed"] == 1


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (MODEL_FILE[:-1], "model_truncated"),
        (MODEL_FILE[:100], "model_truncated"),
        (MODEL_FILE[:-1] + bytes([MODEL_FILE[-1] ^ 1]), "model_corrupt"),
        (b"PK\x03\x04 something else altogether", "model_format"),
    ],
)
def test_a_file_that_is_no_model_is_refused(bare, file, code):
    assert_problem(upload(bare, "m", file), 422, code)
    assert bare.ok("GET", "/models") == {"models": []}


def test_a_collection_is_created_once(bare):
    upload(bare, "tiny", MODEL_FILE)
    response = bare.put("/collections/c", {"model": "tiny"})
    assert response.status_code == 201
    info = {
        "name": "c",
        "model": "tiny",
        "indexes": [],
        "encoders": {},
        "keep": "none",
        "state": "ready",
        "items": 0,
        "databases": {"image": 0, "text": 0, "pair": 0},
        "code_bytes": 0,
    }
    assert response.json() == info
    CollectionInfo.model_validate(info)
    again = bare.put("/collections/c", {"model": "tiny"})
    assert (again.status_code, again.json()) == (200, info)
    assert bare.ok("GET", "/collections") == {"collections": [info]}
    CollectionList.model_validate(bare.ok("GET", "/collections"))
    upload(bare, "other", OTHER.to_bytes())
    problem = assert_problem(bare.put("/collections/c", {"model": "other"}), 409, "collection_conflict")
    assert "'tiny'" in problem["detail"]
    assert "'other'" in problem["detail"]


def test_a_deleted_collection_is_gone_and_made_anew_is_empty(filled):
    assert filled.delete("/collections/default").status_code == 204
    assert_problem(filled.get("/collections/default"), 404, "collection_not_found")
    assert_problem(filled.get("/items"), 404, "collection_not_found")
    assert_problem(filled.delete("/collections/default"), 404, "collection_not_found")
    filled.create()
    assert filled.ok("GET", "/items") == {"items": [], "next_cursor": None, "model": "tiny", "total": 0}
    filled.ok("POST", "/index", {"items": [item(1)]})
    filled.restart()
    assert [found["id"] for found in filled.ok("GET", "/items")["items"]] == ["item-1"]


def test_a_model_with_one_modality_has_one_database(bare):
    upload(bare, "sounds", OTHER.to_bytes())
    bare.put("/collections/default", {"model": "sounds"})
    vectors = PAIRS["text"][:5].tolist()
    bare.ok("POST", "/index", {"items": [{"id": i, "features": {"sound": v}} for i, v in enumerate(vectors)]})
    hits = bare.ok("POST", "/search", {"query": {"sound": vectors[2]}, "limit": 5})["results"]
    assert {hit["database"] for hit in hits} == {"sound"}
    assert len(hits) == 5
    assert np.all(np.diff([hit["distance"] for hit in hits]) >= 0)


def test_probes_and_version(bare):
    assert bare.ok("GET", "/livez") == {"status": "alive"}
    assert bare.ok("GET", "/readyz") == {"status": "ready"}
    assert bare.ok("GET", "/version") == {"name": "ccq-search", "version": __version__}


def test_a_collection_that_cannot_be_loaded_is_told_and_the_others_serve(filled):
    filled.create("good")
    filled.ok("POST", "/collections/good/index", {"items": [item(0)]})
    store = filled.app.state.runtime.store
    record = filled.catalog.entry("default").record
    damage = f"UPDATE codes_{record.number} SET data = zeroblob(length(data))"  # that the service itself cannot do
    store._writer.run(lambda db: db.execute(damage))
    filled._stop()
    filled._open()
    filled.catalog._loader.join()
    problem = assert_problem(filled.get("/readyz"), 503, "not_ready")
    assert [fault["pointer"] for fault in problem["errors"]] == ["/collections/default"]
    assert_problem(filled.post("/search", {"query": features(0)}), 503, "collection_failed")
    assert filled.ok("GET", "/collections/default") == {
        "name": "default",
        "model": "tiny",
        "indexes": [],
        "encoders": {},
        "keep": "none",
        "state": "failed",
        "items": None,
        "databases": None,
        "code_bytes": None,
    }
    assert len(filled.ok("POST", "/collections/good/search", {"query": features(0)})["results"]) == 1
