"""Memory follows the store, also where something fails at the worst moment."""

import logging
import threading
import time

import numpy as np
import pytest

from ccq_core.table import CodeTable
from service.errors import StorageError
from service.records import Codes, Layout
from service.store.sqlite import SQLiteStore
from tests.service.harness import assert_problem, features, item


def assert_memory_is_the_store(service):
    """Every code row in memory is what the store has, and nothing else is there."""
    collection = service.catalog.collection("default")
    with collection.read() as (view, snapshot):
        assert view.version == snapshot.version
        assert view.items == snapshot.count()
        stored = list(snapshot.codes())
        seqs = np.concatenate([seqs for seqs, _ in stored])
        useful = ~np.isin(seqs, snapshot.gone())
        assert useful.sum() == view.items
        codes = collection.view.coder.layout.unpack(b"".join(records for _, records in stored))
        seqs, codes = seqs[useful], Codes(codes.present[useful], codes.rows[useful])
        for i, (database, table) in enumerate(view.tables.items()):
            labels, rows = table.arrays()
            assert labels.tolist() == seqs[codes.present[:, i]].tolist(), database
            assert np.array_equal(rows, codes.rows[codes.present[:, i], i])


def fail_once(monkeypatch, owner, name, *, after=0, error=MemoryError):
    """Let a method fail at one of its next calls."""
    original = getattr(owner, name)
    calls = []

    def wrapper(*args, **rest):
        calls.append(name)
        if len(calls) == after + 1:
            raise error("out of memory")
        return original(*args, **rest)

    monkeypatch.setattr(owner, name, wrapper)
    return calls


@pytest.mark.parametrize("method", ["append", "delete", "view"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_failure_after_the_commit_does_not_leave_memory_behind(filled, monkeypatch, method, after):
    with monkeypatch.context() as patch:
        calls = fail_once(patch, CodeTable, method, after=after)
        reply = filled.post("/index", {"items": [item(i) for i in range(5, 65)]})
    assert len(calls) > after
    assert reply.status_code == 200  # it is durable and visible, so it has succeeded
    assert_memory_is_the_store(filled)
    assert filled.ok("GET", "/collections/default")["items"] == 65
    hits = filled.ok("POST", "/search", {"query": features(0), "limit": 100})["results"]
    assert {hit["id"] for hit in hits} >= {f"item-{i}" for i in range(5, 65)}


@pytest.mark.parametrize("then", ["search", "index", "delete"])
def test_memory_catches_up_later_if_loading_fails_too(filled, monkeypatch, then):
    with monkeypatch.context() as patch:
        patch.setattr(CodeTable, "append", lambda *_: (_ for _ in ()).throw(MemoryError("out of memory")))
        assert_problem(filled.post("/index", {"items": [item(100)]}), 500, "internal_error")
    if then == "search":
        hits = filled.ok("POST", "/search", {"query": features(100), "limit": 100})["results"]
        assert "item-100" in {hit["id"] for hit in hits}
    elif then == "index":
        filled.ok("POST", "/index", {"items": [item(101)]})
    else:
        filled.ok("POST", "/items/delete", {"ids": ["item-3"]})
    assert_memory_is_the_store(filled)
    assert filled.ok("GET", "/items/item-100")["payload"] == {"n": 100}


@pytest.mark.parametrize("method", ["upsert", "delete_ids"])
def test_a_failure_before_the_commit_changes_nothing(filled, monkeypatch, method):
    with monkeypatch.context() as patch:
        fail_once(patch, SQLiteStore, method, error=StorageError)
        assert_problem(filled.post("/index", {"items": [item(100)]}), 500, "storage_error") if method == "upsert" else (
            assert_problem(filled.post("/items/delete", {"ids": ["item-1"]}), 500, "storage_error")
        )
    assert filled.catalog.collection("default").view.version == 1
    assert_memory_is_the_store(filled)


def test_a_write_that_fails_while_it_commits_changes_nothing(filled):
    store = filled.app.state.runtime.store
    store._connection.pragma("max_page_count", store._connection.pragma("page_count"))
    payload = {"x": "y" * 60_000}
    problem = assert_problem(filled.post("/index", {"items": [item(0, **payload)]}), 507, "storage_full")
    assert "disk" in problem["detail"]
    assert_memory_is_the_store(filled)
    assert filled.ok("GET", "/items/item-0")["payload"] == {"n": 0, "even": True}
    store._connection.pragma("max_page_count", 1_000_000)
    assert filled.ok("POST", "/index", {"items": [item(0, **payload)]})["indexed"] == 1


def test_a_reader_that_never_finds_both_at_one_version_waits_for_the_writer(filled):
    collection = filled.catalog.collection("default")
    behind = collection.view
    filled.ok("POST", "/items/delete", {"ids": ["item-2"]})
    collection._view = behind  # as if a write had died between its commit and publishing
    with collection.read() as (view, snapshot):
        assert view.version == snapshot.version == 2
        assert view.items == 59
    assert_memory_is_the_store(filled)


def test_a_write_to_a_collection_that_was_deleted_meanwhile(filled):
    collection = filled.catalog.collection("default")
    filled.delete("/collections/default")
    filled.catalog._entries["default"] = type("Entry", (), {"loaded": lambda _: collection})()
    for path, body in (("/index", {"items": [item(0)]}), ("/search", {"query": features(0)})):
        assert_problem(filled.post(path, body), 404, "collection_not_found")


@pytest.mark.parametrize("databases", [1, 3, 8, 9, 17])
def test_records_hold_any_codes(databases):
    rng = np.random.default_rng(databases)
    layout = Layout(tuple(map(str, range(databases))), 5)
    present = rng.random((40, databases)) < 0.5
    rows = rng.integers(0, 256, (40, databases, 5), dtype=np.uint8)
    records = layout.pack(Codes(present, rows))
    assert len(records) == 40 * layout.size
    again = layout.unpack(records)
    assert np.array_equal(again.present, present)
    assert np.array_equal(again.rows, rows)
    with pytest.raises(ValueError, match="multiple"):
        layout.unpack(records[:-1])


def test_what_is_done_between_writes_sees_none_of_them_half_published(filled, caplog):
    """A search that finds writes too fast looks between two of them, though they may be committed together."""
    collection, store = filled.catalog.collection("default"), filled.app.state.runtime.store
    go = threading.Event()
    others = [lambda: store._writer.run(lambda _: go.wait(10))]
    for i in range(4):
        others.append(lambda i=i: collection.delete_ids([f"item-{i}"]))
        others.append(lambda: store.exclusively(collection._catch_up))
    threads = [threading.Thread(target=work) for work in others]
    for thread in threads:
        thread.start()
        time.sleep(0.02)  # in this order, and the last ones together while the first is at work
    go.set()
    for thread in threads:
        thread.join()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert_memory_is_the_store(filled)


def test_memory_that_was_loaded_again_is_not_loaded_for_each_write_that_it_has(filled, monkeypatch, caplog):
    collection, store = filled.catalog.collection("default"), filled.app.state.runtime.store
    go = threading.Event()
    others = [lambda: store._writer.run(lambda _: go.wait(10))]
    others += [lambda i=i: collection.delete_ids([f"item-{i}"]) for i in range(4)]
    threads = [threading.Thread(target=work) for work in others]
    with monkeypatch.context() as patch:
        fail_once(patch, CodeTable, "delete")
        for thread in threads:
            thread.start()
            time.sleep(0.02)
        go.set()
        for thread in threads:
            thread.join()
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
    assert_memory_is_the_store(filled)
