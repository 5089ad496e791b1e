"""Aliases: other names of collections, which may be moved at once."""

import threading

import pytest

from service import errors
from service.catalog import Catalog
from service.schemas.aliases import AliasInfo, AliasList
from service.store.check import check
from service.store.reading import DATABASE_NAME
from service.store.sqlite import SQLiteStore
from tests.service.harness import MODEL_FILE, InProcess, assert_problem, features, item
from tests.service.test_access import bearer, create_key


@pytest.fixture
def service(bare):
    """Collections `a` with item 1 and `b` with item 2, and an alias `photos` of `a`."""
    for i, name in enumerate("ab", 1):
        bare.create(name)
        bare.ok("POST", f"/collections/{name}/index", {"items": [item(i)]})
    assert bare.put("/aliases/photos", {"collection": "a"}).status_code == 201
    return bare


def only_id(service, name="photos"):
    (hit,) = service.ok("POST", f"/collections/{name}/search", {"query": features(0)})["results"]
    return hit["id"]


def test_an_alias_stands_wherever_a_collection_does(service):
    path = "/collections/photos"
    assert only_id(service) == "item-1"
    assert service.ok("GET", path)["name"] == "a"
    service.ok("POST", f"{path}/index", {"items": [item(3)]})
    assert [one["id"] for one in service.ok("GET", f"{path}/items")["items"]] == ["item-1", "item-3"]
    assert service.ok("POST", f"{path}/facets", {"key": "n"})["total"] == 2
    assert service.put(f"{path}/items/item-3/payload", {"n": 9}).status_code == 200
    assert service.ok("GET", "/collections/a/items/item-3")["payload"] == {"n": 9}
    assert service.delete(f"{path}/items/item-3").status_code == 204
    assert service.ok("POST", f"{path}/items/delete", {"ids": ["item-1"]})["deleted"] == 1
    assert service.ok("GET", "/collections/a")["items"] == 0
    assert [one["name"] for one in service.ok("GET", "/collections")["collections"]] == ["a", "b"]


def test_it_is_moved_listed_deleted_and_kept(service):
    listed = service.ok("GET", "/aliases")
    AliasList.model_validate(listed)
    assert listed == {"aliases": [{"alias": "photos", "collection": "a"}]}
    moved = service.put("/aliases/photos", {"collection": "b"})
    assert (moved.status_code, moved.json()) == (200, {"alias": "photos", "collection": "b"})
    AliasInfo.model_validate(moved.json())
    assert only_id(service) == "item-2"
    service.ok("PUT", "/aliases/another", {"collection": "b"})
    service.restart()
    assert [one["alias"] for one in service.ok("GET", "/aliases")["aliases"]] == ["another", "photos"]
    assert only_id(service) == only_id(service, "another") == "item-2"
    assert service.delete("/aliases/photos").status_code == 204
    for path in ("/collections/photos", "/collections/photos/items"):
        assert_problem(service.get(path), 404, "collection_not_found")
    assert_problem(service.get("/aliases/photos"), 404, "alias_not_found")
    assert_problem(service.delete("/aliases/photos"), 404, "alias_not_found")
    assert service.ok("GET", "/aliases/another") == {"alias": "another", "collection": "b"}


def test_names_mean_one_thing(service):
    for method, path, body, words in (
        ("PUT", "/aliases/b", {"collection": "a"}, "another name for the alias than 'b', which is a collection"),
        ("PUT", "/aliases/new", {"collection": "photos"}, "got 'photos', an alias of collection 'a'"),
        ("PUT", "/collections/photos", {"model": "tiny"}, "got 'photos', an alias of collection 'a'"),
        ("DELETE", "/collections/photos", None, "got 'photos', an alias of 'a'"),
        ("DELETE", "/collections/a", None, "while an alias leads to it: 'photos'"),
    ):
        problem = assert_problem(service.request(method, path, json=body), 409, "alias_conflict")
        assert words in problem["detail"]
    assert_problem(service.put("/aliases/new", {"collection": "nowhere"}), 404, "collection_not_found")
    assert_problem(service.put("/aliases/new", {}), 422, "invalid_request")
    assert "(there are 'a', 'b')" in service.put("/aliases/new", {"collection": "nowhere"}).json()["detail"]
    for response in (service.get("/aliases/foto"), service.delete("/aliases/foto")):
        assert response.json()["detail"] == "no alias 'foto' (there is 'photos'); PUT /aliases/foto creates it"
    assert_problem(service.put("/aliases/-", {"collection": "a"}), 422, "invalid_request")
    assert service.ok("GET", "/aliases") == {"aliases": [{"alias": "photos", "collection": "a"}]}
    service.delete("/aliases/photos")
    assert service.delete("/collections/a").status_code == 204
    assert service.put("/collections/photos", {"model": "tiny"}).status_code == 201


def test_the_default_collection_may_be_an_alias(tmp_path):
    service = InProcess(tmp_path / "data", default_collection="photos")
    service.create("a")
    service.ok("PUT", "/aliases/photos", {"collection": "a"})
    service.ok("POST", "/index", {"items": [item(1)]})
    assert only_id(service, "a") == "item-1"
    assert len(service.ok("POST", "/search", {"query": features(0)})["results"]) == 1
    service.close()
    store = SQLiteStore(tmp_path / "data")
    Catalog(store, service.settings, {}).adopt("tiny", MODEL_FILE, "photos")  # as `ccq serve --model` does
    with pytest.raises(errors.DefaultModelError, match="'a' has model 'tiny', not 'other'"):
        Catalog(store, service.settings, {}).adopt("other", MODEL_FILE, "photos")
    assert [record.name for record in store.collections()] == ["a"]
    store.close()


def test_keys_for_some_collections_go_by_the_name_of_the_collection(tmp_path):
    mine = bearer(create_key(tmp_path / "data", "of-a", "admin", collections=("a", "elsewhere")))
    everything = bearer(create_key(tmp_path / "data", "all", "admin"))
    service = InProcess(tmp_path / "data")
    service.client.headers.update(everything)
    service.create("a")
    service.create("b")
    service.ok("PUT", "/aliases/photos", {"collection": "a"})
    service.ok("PUT", "/aliases/elsewhere", {"collection": "b"})
    assert service.get("/collections/photos/items", headers=mine).status_code == 200
    assert service.get("/collections/photos", headers=mine).status_code == 200
    for path in ("/collections/elsewhere/items", "/collections/elsewhere", "/aliases/elsewhere", "/aliases/nothing"):
        problem = assert_problem(service.get(path, headers=mine), 403, "forbidden")
        assert "'b'" not in problem["detail"]
    assert service.get("/aliases", headers=mine).json() == {"aliases": [{"alias": "photos", "collection": "a"}]}
    assert service.get("/aliases/photos", headers=mine).json()["collection"] == "a"
    service.close()


def test_jobs_are_of_the_collection_that_an_alias_leads_to(keeping):
    keeping.ok("PUT", "/aliases/photos", {"collection": "default"})
    for path, body in (
        ("/collections/photos/reencode", {"model": "other"}),
        ("/models/new/train", {"collection": "photos"}),
    ):
        reply = keeping.post(path, body)
        assert reply.status_code == 202, reply.text
        job = reply.json()
        keeping.delete(f"/jobs/{job['id']}")
        assert "default" in (job["target"], job["parameters"].get("collection"))


def test_it_is_moved_at_once(service):
    """While an alias goes to and fro, every search through it has an answer, from one collection or the other."""
    stop, found, catalog = threading.Event(), set(), service.catalog

    def move():
        turn = 0
        while not stop.is_set():
            turn += 1
            catalog.put_alias("photos", "ab"[turn % 2])

    thread = threading.Thread(target=move)
    thread.start()
    for _ in range(150):
        found.add(only_id(service))
    stop.set()
    thread.join()
    assert found == {"item-1", "item-2"}


def test_an_alias_that_leads_nowhere_is_named_by_a_check(service):
    store = service.app.state.runtime.store
    assert not any(part.faults for part in _checked(service))
    store._writer.run(lambda db: db.execute("INSERT INTO aliases VALUES ('lost', 99), ('b', 1)"))
    (faults,) = [part.faults for part in _checked(service) if part.faults]
    assert [fault.split("'")[1] for fault in faults] == ["b", "lost"]


def _checked(service):
    """What a check says of a copy of the database as it is now."""
    left = service.settings.data.with_name("left")
    left.mkdir(exist_ok=True)
    (left / DATABASE_NAME).unlink(missing_ok=True)
    service.app.state.runtime.store.copy(left / DATABASE_NAME, lambda: None)
    return list(check(left))
