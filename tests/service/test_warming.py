"""Latent vectors that are read ahead, once results were ranked anew."""

import threading
import time

import pytest

from service.kept import KeptLayout
from tests.service.harness import InProcess, assert_problem, features, item

N = 60


def kept_service(data, **settings):
    service = InProcess(data, **settings)
    service.create("other")
    service.put("/collections/default", {"model": "tiny", "keep": "int8"})
    return service


def index(service, numbers, *modalities):
    service.ok("POST", "/index", {"items": [item(i, *modalities) for i in numbers]})


def search(service, i=200, database="image", **body):
    wanted = {"query": features(i, "image"), "database": database, "limit": 5, "oversampling": 1, **body}
    return service.ok("POST", "/search", {"rescore": True, **wanted})["results"]


def warming(service):
    return service.app.state.runtime.searches._caches.warming


def wait(done, what):
    for _ in range(1000):
        if done():
            return
        time.sleep(0.01)
    pytest.fail(what)


def at_rest(service):
    wait(lambda: not warming(service)._begun, "still reading ahead after 10 s")


@pytest.fixture
def reads(monkeypatch):
    """How many records were looked at by searches and by reading ahead."""
    counted, unpack = [], KeptLayout.unpack

    def counting(self, records, wanted=None):
        counted.append(len(records))
        return unpack(self, records, wanted)

    monkeypatch.setattr(KeptLayout, "unpack", counting)
    return counted


def test_after_the_first_search_nothing_is_read_any_more(tmp_path, reads, monkeypatch):
    monkeypatch.setattr("service.warming._TOGETHER", 7)
    service = kept_service(tmp_path / "data")
    index(service, range(0, N, 2), "image")
    index(service, range(1, N, 2))
    assert reads == []
    first = search(service)
    at_rest(service)
    assert sum(reads) == N + 6, "all once, and the candidates of the search that began it"
    reads.clear()
    assert search(service) == first
    for i in range(200, 230):
        search(service, i, limit=N)
    assert reads == []
    search(service, database="pair")
    at_rest(service)
    reads.clear()
    search(service, database="pair", limit=N)
    assert reads == [], "another database, of items some of which are not in it"
    service.close()


def test_items_that_come_later(tmp_path, reads):
    service = kept_service(tmp_path / "data")
    index(service, range(N))
    search(service)
    at_rest(service)
    index(service, range(N, N + 9))
    index(service, range(3))
    service.ok("POST", "/items/delete", {"ids": ["item-9"]})
    reads.clear()
    search(service, limit=N + 9)
    at_rest(service)
    assert reads == [12, 12], "the new ones, by the search and ahead"
    search(service, limit=N + 9)
    assert reads == [12, 12]
    service.close()


def test_results_are_the_same(tmp_path):
    found = []
    for size in (0, 1 << 20):
        service = kept_service(tmp_path / str(size), rescore_cache_bytes=size)
        index(service, range(0, N, 2), "image")
        index(service, range(1, N, 2))
        for database in ("image", "text", "pair"):
            search(service, database=database)
        at_rest(service)
        found.append(
            [search(service, i, name, limit=20) for i in range(200, 230) for name in ("image", "text", "pair")]
        )
        service.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("bytes_", [0, 700])
def test_where_memory_cannot_hold_all_nothing_is_read_ahead(tmp_path, reads, bytes_):
    service = kept_service(tmp_path / "data", rescore_cache_bytes=bytes_)
    index(service, range(N))
    search(service)
    at_rest(service)
    assert reads == [6]
    service.close()


def test_a_collection_with_another_model_or_none_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("service.warming._TOGETHER", 1)
    service = kept_service(tmp_path / "data")
    index(service, range(N))
    runtime = service.app.state.runtime
    going, go = threading.Event(), threading.Event()
    read_some = type(warming(service))._read_some
    more = []

    def held(self, *args):
        going.set()
        go.wait(10)
        more.append(read_some(self, *args))
        return more[-1]

    monkeypatch.setattr(type(warming(service)), "_read_some", held)
    search(service)
    assert going.wait(10)
    service.ok("DELETE", "/collections/default")
    go.set()
    at_rest(service)
    assert True not in more
    runtime.searches.close()
    service.close()


def test_closing_ends_it_and_none_begins_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("service.warming._TOGETHER", 1)
    service = kept_service(tmp_path / "data")
    index(service, range(N))
    there = warming(service)
    monkeypatch.setattr(type(there), "_read_some", lambda *_: time.sleep(0.01) or True)
    search(service)
    there.close()
    assert there._begun == set()
    search(service, limit=20)
    assert there._begun == set()
    service.close()


def test_damaged_features_are_the_searchs_to_tell(tmp_path, caplog):
    service = kept_service(tmp_path / "data")
    index(service, range(N))
    service.app.state.runtime.store._connection.execute("UPDATE kept_2 SET data = x'00' WHERE seq = 60")
    near = {"query": features(2, "image"), "database": "image", "limit": 1, "oversampling": 1, "rescore": True}
    assert service.post("/search", near).status_code == 200
    at_rest(service)
    assert [record.levelname for record in caplog.records if record.name == "service.warming"] in ([], ["DEBUG"])
    assert_problem(service.post("/search", {**near, "limit": N}), 500, "storage_error")
    service.close()
