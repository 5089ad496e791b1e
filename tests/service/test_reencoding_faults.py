"""A collection gets another model, or keeps the one that it has: nothing in between, whatever goes wrong."""

import apsw
import pytest

from ccq_core.errors import CCQError
from ccq_core.table import CodeTable
from service import errors, reencoding
from service.collection import Collection
from service.records import Layout
from service.restore import restore
from service.store import discarded, generations, segments
from service.store.connection import open_writer
from service.store.reading import DATABASE_NAME
from service.store.sqlite import SQLiteStore
from tests.service.harness import assert_problem
from tests.service.older import go_back
from tests.service.reencoded import (
    MODELS,
    N,
    assert_codes_are_of_the_model,
    assert_searches_are_those_of,
    encode_anew,
    encoded,
    exact,
    left_behind,
    search,
    tables_of,
    thing,
    tidy,
)


@pytest.mark.parametrize("method", ["append", "delete", "view"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_failure_after_the_swap_was_committed(keeping, monkeypatch, caplog, method, after):
    original, failing = Collection.adopt, getattr(CodeTable, method)
    calls = []

    def fail(*args):
        calls.append(method)
        if len(calls) == after + 1:
            raise MemoryError("out of memory")
        return failing(*args)

    with monkeypatch.context() as patch:

        def adopt(*args):
            keeping.ok("POST", "/index", {"items": [thing(300 + i) for i in range(3)]})
            keeping.ok("POST", "/items/delete", {"ids": ["item-4"]})
            patch.setattr(CodeTable, method, fail)
            return original(*args)

        patch.setattr(Collection, "adopt", adopt)
        done = encode_anew(keeping, "other")
    assert "loading it again after a write" in caplog.text
    assert done.items == N + 2
    assert_codes_are_of_the_model(keeping)
    assert_searches_are_those_of(keeping, "other")


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize("where", ["check", "load", "commit", "encode", "kept"])
def test_a_failure_before_leaves_everything_as_it_was(keeping, small, monkeypatch, where):
    before = search(keeping, query=exact(7))
    store = keeping.app.state.runtime.store
    original, stop = Collection.adopt, raising(InterruptedError())

    def adopt(*args):
        store._connection.pragma("max_page_count", store._connection.pragma("page_count"))
        return original(*args)

    raised = InterruptedError if where in ("check", "load") else errors.StorageError
    with monkeypatch.context() as patch:
        progress, checked = (lambda *_: None), (lambda: None)
        if where == "check":
            checked = stop
        elif where == "load":
            progress = lambda phase, *_: phase == "load" and stop()  # noqa: E731
        elif where == "commit":
            raised = errors.StorageFullError
            keeping.ok("POST", "/index", {"items": [thing(i) for i in range(300, 303)]})
            before = search(keeping, query=exact(7))
            patch.setattr(segments, "add", raising(apsw.FullError()))
        elif where == "encode":
            raised = errors.ReencodeError
            fault = errors.Fault.at(("item number 3", "image"), "too far")
            patch.setattr(reencoding, "encode_items", raising(errors.CoreInputError(CCQError("far"), fault)))
        else:
            store._writer.run(lambda db: db.execute("DELETE FROM kept_1 WHERE seq = 9"))
        with pytest.raises(raised):
            encode_anew(keeping, "other", progress, checked)
    assert keeping.ok("GET", "/collections/default")["model"] == "tiny"
    assert search(keeping, query=exact(7)) == before
    tidy(keeping)
    assert tables_of(keeping) == ["codes_1", "gone_1"]
    assert keeping.delete("/models/other").status_code == 204
    keeping.restart()
    assert search(keeping, query=exact(7)) == before


def test_what_could_not_be_abandoned_is_no_hindrance(keeping, small, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(generations, "abandon", raising(apsw.FullError()))
        with pytest.raises(InterruptedError):
            encode_anew(keeping, "other", check=raising(InterruptedError()))
        assert len(tables_of(keeping)) == 4
    encode_anew(keeping, "other")
    assert_codes_are_of_the_model(keeping)
    tidy(keeping)
    assert len(tables_of(keeping)) == 2


def test_what_is_left_of_it_after_a_crash_is_cleared_at_the_next_start(keeping, tmp_path):
    store = keeping.app.state.runtime.store
    record = keeping.catalog.entry("default").record
    staging = store.stage(record, "other")
    collection = keeping.catalog.collection("default")
    seqs, kept = staging.rest(50)
    layout = Layout.of(MODELS["other"])
    staging.add(seqs, layout.pack(encoded(collection, kept, MODELS["other"])))
    keeping.ok("POST", "/items/delete", {"ids": ["item-3", "item-70"]})
    with pytest.raises(errors.ReencodingError, match="'other' already"):
        store.stage(record, "other")
    problem = assert_problem(keeping.delete("/models/other"), 409, "model_in_use")
    assert "'default'" in problem["detail"]
    assert len(tables_of(keeping)) == 4
    snapshot = keeping.app.state.runtime.snapshots.make()  # has none of it
    restore(snapshot.file, tmp_path / "restored")
    copy = SQLiteStore(tmp_path / "restored")
    with copy._read() as db:
        assert [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'codes_*'")] == [
            "codes_1"
        ]
        assert db.execute("SELECT count(*) FROM discarded").get == db.execute("SELECT count(*) FROM staging").get == 0
    copy.close()
    parts = left_behind(keeping, tmp_path)
    assert "50 staged for model 'other'" in parts["collection 'default'"].summary
    assert not any(part.faults for part in parts.values())
    keeping.restart()
    tidy(keeping)
    assert tables_of(keeping) == ["codes_1", "gone_1"]
    with pytest.raises(errors.StorageError, match="closed"):
        staging.add(seqs, b"")
    encode_anew(keeping, "other")
    assert_codes_are_of_the_model(keeping)


def test_a_database_of_version_5_is_brought_up_to_date(keeping):
    before = search(keeping, query=exact(7))
    keeping._stop()
    connection = open_writer(keeping.settings.data / DATABASE_NAME, existing=True)
    go_back(connection, 5)
    connection.close()
    keeping._open()
    keeping.wait_until_ready()
    assert search(keeping, query=exact(7)) == before
    keeping.ok("PUT", "/aliases/photos", {"collection": "default"})
    encode_anew(keeping, "other")
    assert_codes_are_of_the_model(keeping)
    keeping.restart()
    assert_codes_are_of_the_model(keeping)


def test_a_collection_that_is_dropped_meanwhile(keeping, small):
    with pytest.raises(errors.UnknownCollectionError):
        encode_anew(keeping, "other", lambda *_: keeping.delete("/collections/default"))
    tidy(keeping)
    assert tables_of(keeping) == []
    assert keeping.delete("/models/other").status_code == 204


def test_former_codes_go_bit_by_bit(keeping, small, monkeypatch):
    keeping.ok("POST", "/index", {"items": [thing(i) for i in range(100, 350)]})
    monkeypatch.setattr(discarded, "_SEGMENTS", 1)
    store = keeping.app.state.runtime.store
    monkeypatch.setattr(store._writer, "_tidy", lambda _: False)
    encode_anew(keeping, "other")
    rows = []
    while "codes_1" in tables_of(keeping):
        rows.append(store._writer.run(lambda db: db.execute("SELECT count(*) FROM codes_1").get))
        store._writer.run(discarded.clear_some)
    assert rows == list(range(rows[0], 0, -1))
    assert rows[0] > 1
    while store._writer.run(discarded.clear_some):
        pass
    assert len(tables_of(keeping)) == 2
