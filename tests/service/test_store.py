"""What a store promises, as a class that every implementation has to pass; and what is particular to SQLite."""

import threading

import apsw
import numpy as np
import pytest

from service import errors
from service.store.connection import SCHEMA_VERSION
from service.store.interface import NewItem, Store
from service.store.reading import DATABASE_NAME
from service.store.sqlite import SQLiteStore


def new(*ids, payload=b"{}"):
    return [NewItem(item_id, payload) for item_id in ids]


def quiet(_change):
    """Publishes nothing."""


def upsert(store, record, items, codes=b"\x01\x02"):
    return store.upsert(record, items, codes * len(items), quiet)


def ids(store, record):
    with store.snapshot(record) as snapshot:
        return [item_id for _, item_id, _ in snapshot.scan(payloads=False)]


def held(snapshot):
    """Code records of the items that exist, of two bytes each, by sequence number; in order."""
    records = {}
    for seqs, data in snapshot.codes():
        assert seqs.dtype == np.int64
        records |= {seq: data[2 * i : 2 * i + 2] for i, seq in enumerate(seqs.tolist())}
    assert list(records) == sorted(records)
    for seq in snapshot.gone().tolist():
        records.pop(seq)  # only what is there can be gone
    return records


class StoreTests:
    """Subclasses have a fixture `store`, an empty store, and a method `reopen(store)`."""

    def reopen(self, store: Store) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def record(self, store):
        store.put_model("m", b"model")
        return store.create_collection("c", "m")[0]

    def test_models(self, store):
        assert store.put_model("b", b"1") == "created"
        assert store.put_model("a", b"22") == "created"
        assert store.put_model("b", b"1") == "unchanged"
        assert store.put_model("b", b"333") == "replaced"
        assert [(model.name, model.size) for model in store.models()] == [("a", 2), ("b", 3)]
        assert store.model("b") == store.models()[1]
        assert store.model_file("b") == (store.model("b"), b"333")
        store.delete_model("a")
        for call in (store.model, store.model_file, store.delete_model):
            with pytest.raises(errors.UnknownModelError):
                call("a")

    def test_a_used_model_stays(self, store, record):
        with pytest.raises(errors.ModelInUseError, match="'c'"):
            store.delete_model("m")
        with pytest.raises(errors.ModelInUseError, match="'c'"):
            store.put_model("m", b"other")
        assert store.put_model("m", b"model") == "unchanged"
        store.drop_collection(record)
        store.delete_model("m")

    def test_collections(self, store, record):
        assert store.create_collection("c", "m") == (record, False)
        store.put_model("n", b"n")
        with pytest.raises(errors.CollectionConflictError, match=r"'m'.*'n'"):
            store.create_collection("c", "n")
        with pytest.raises(errors.UnknownModelError):
            store.create_collection("d", "nothing")
        assert store.collections() == [record]

    def test_a_dropped_collection_is_gone_for_good(self, store, record):
        upsert(store, record, new("a"))
        store.drop_collection(record)
        again, is_new = store.create_collection("c", "m")
        assert is_new
        assert again != record
        assert ids(store, again) == []
        for call in (
            lambda: store.drop_collection(record),
            lambda: upsert(store, record, new("a")),
            lambda: store.delete_ids(record, ["a"], quiet),
            lambda: store.delete_where(record, lambda _: [1], quiet),
            lambda: store.snapshot(record).__enter__(),
        ):
            with pytest.raises(errors.UnknownCollectionError):
                call()
        assert store.collections() == [again]

    def test_upsert_numbers_items_in_order_and_replaces(self, store, record):
        first = upsert(store, record, new("b", "a"))
        assert (first.version, first.added.tolist(), first.removed.tolist()) == (1, [1, 2], [])
        second = upsert(store, record, new("c", "b", payload=b'{"n":2}'))
        assert (second.version, second.added.tolist(), second.removed.tolist()) == (2, [3, 4], [1])
        assert ids(store, record) == ["a", "c", "b"]
        with store.snapshot(record) as snapshot:
            assert snapshot.version == 2
            assert snapshot.item("b").payload == b'{"n":2}'
            assert snapshot.item("b").seq == 4
            assert snapshot.item("nobody") is None

    def test_numbers_are_never_used_twice(self, store, record):
        upsert(store, record, new("a", "b"))
        store.delete_ids(record, ["a", "b"], quiet)
        store = self.reopen(store)
        assert upsert(store, record, new("c")).added.tolist() == [3]

    def test_deletions(self, store, record):
        upsert(store, record, new("a", "b", "c", "d"))
        change = store.delete_ids(record, ["c", "x", "a"], quiet)
        assert (change.version, change.added.tolist(), change.removed.tolist()) == (2, [], [1, 3])
        change = store.delete_where(record, lambda _: [9, 4, 1], quiet)
        assert (change.version, change.removed.tolist()) == (3, [4])
        assert ids(store, record) == ["b"]

    def test_a_snapshot_stays_as_it_was(self, store, record):
        upsert(store, record, new("a", "b"), b"12")
        with store.snapshot(record) as snapshot:
            store.delete_ids(record, ["a"], quiet)
            upsert(store, record, new("b", "c"), b"34")
            assert snapshot.version == 1
            assert snapshot.count() == 2
            assert [item_id for _, item_id, _ in snapshot.scan(payloads=True)] == ["a", "b"]
            assert list(snapshot.texts([1, 2, 3], payloads=True)) == [(1, "a", b"{}"), (2, "b", b"{}")]
            assert list(snapshot.texts([2], payloads=False)) == [(2, "b", None)]
            assert held(snapshot) == {1: b"12", 2: b"12"}
        assert ids(store, record) == ["b", "c"]

    def test_pages(self, store, record):
        upsert(store, record, new(*"abcde"))
        store.delete_ids(record, ["b"], quiet)
        with store.snapshot(record) as snapshot:
            assert [row.id for row in snapshot.page(0, 2)] == ["a", "c"]
            assert [row.id for row in snapshot.page(3, 9)] == ["d", "e"]
            assert list(snapshot.page(5, 9)) == []

    def test_payloads_may_be_absent_and_are_kept_byte_by_byte(self, store, record):
        upsert(store, record, new("null", payload=None) + new("text", payload=b'{"a": "\\u0000 \xc3\xa9"}'))
        with store.snapshot(record) as snapshot:
            assert snapshot.item("null").payload is None
            assert snapshot.item("text").payload == b'{"a": "\\u0000 \xc3\xa9"}'
            assert list(snapshot.scan(payloads=False)) == [(1, "null", None), (2, "text", None)]

    def test_an_iteration_may_be_left_early_or_by_an_error(self, store, record):
        upsert(store, record, new(*"abc"))
        kept = []

        def leave_early():
            with store.snapshot(record) as snapshot:
                kept.append(snapshot.scan(payloads=True))
                next(kept[0])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            leave_early()
        upsert(store, record, new("d"))
        assert ids(store, record) == ["a", "b", "c", "d"]

    def test_what_fails_changes_nothing(self, store, record):
        upsert(store, record, new("a"))

        def breaking(_snapshot):
            yield 1
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.delete_where(record, breaking, quiet)
        with pytest.raises(errors.StorageError):
            upsert(store, record, new("x", "y", "x"))
        with store.snapshot(record) as snapshot:
            assert snapshot.version == 1
        assert ids(store, record) == ["a"]

    def test_everything_is_there_after_reopening(self, store, record):
        upsert(store, record, new("a", "b"))
        models = store.models()
        store = self.reopen(store)
        assert store.models() == models
        assert store.collections() == [record]
        assert ids(store, record) == ["a", "b"]

    def test_writes_and_reads_from_many_threads(self, store, record):
        failures = []

        def write(n):
            try:
                for i in range(20):
                    upsert(store, record, new(f"{n}-{i}", f"{n}-{i}-twin"))
            except Exception as error:
                failures.append(error)

        def read():
            try:
                for _ in range(40):
                    with store.snapshot(record) as snapshot:
                        assert snapshot.count() == 2 * snapshot.version
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(ids(store, record)) == 120

    def test_a_closed_store_refuses(self, store, record):
        store.close()
        for call in (store.models, lambda: upsert(store, record, new("a"))):
            with pytest.raises(errors.StorageError, match="closed"):
                call()


class TestSQLiteStore(StoreTests):
    @pytest.fixture
    def opened(self):
        stores = []
        yield stores
        stores[-1]._writer._closed or stores[-1].close()

    @pytest.fixture
    def store(self, tmp_path, opened):
        self.directory, self.opened = tmp_path / "data", opened
        opened.append(SQLiteStore(self.directory))
        return opened[-1]

    def reopen(self, store):
        store.close()
        self.opened.append(SQLiteStore(self.directory))
        return self.opened[-1]

    def test_it_is_set_up_to_survive_power_loss(self, store):
        writer = store._connection
        assert writer.pragma("journal_mode") == "wal"
        assert writer.pragma("synchronous") == 2
        assert writer.pragma("foreign_keys") == 1

    def test_a_second_store_on_the_directory_is_refused(self, store):
        with pytest.raises(errors.DirectoryInUseError, match=rf"{self.directory} is in use by process \d+"):
            SQLiteStore(self.directory)
        store.models()

    def test_readers_cannot_write(self, store):
        with pytest.raises(errors.StorageError), store._read() as db:
            db.execute("DELETE FROM models")


def test_a_newer_schema_is_refused(tmp_path):
    SQLiteStore(tmp_path).close()
    with apsw.Connection(str(tmp_path / DATABASE_NAME)) as connection:
        connection.pragma("user_version", SCHEMA_VERSION + 1)
    connection.close()
    for _ in range(2):  # the lock is let go of
        with pytest.raises(
            errors.DatabaseError, match=f"version {SCHEMA_VERSION + 1}, this package knows up to {SCHEMA_VERSION}"
        ):
            SQLiteStore(tmp_path)


def test_a_database_of_another_program_is_refused(tmp_path):
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(errors.DatabaseError, match="was not made by ccq-search"):
        SQLiteStore(tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / DATABASE_NAME).write_bytes(b"x" * 10_000)
    with pytest.raises(errors.DatabaseError, match="not a database"):
        SQLiteStore(tmp_path)
    assert (tmp_path / DATABASE_NAME).read_bytes() == b"x" * 10_000


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.StartError, match=r"file.*: (Not a directory|File exists)"):
        SQLiteStore(tmp_path / "file")


def test_a_lock_of_another_program_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("service.store.connection._BUSY_MS", 10)
    store = SQLiteStore(tmp_path)
    other = apsw.Connection(str(tmp_path / DATABASE_NAME))
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.StorageBusyError):
            store.put_model("m", b"x")
        other.execute("ROLLBACK")
        assert store.put_model("m", b"x") == "created"
    finally:
        other.close()
        store.close()


def test_a_full_disk_is_told_and_changes_nothing(tmp_path):
    store = SQLiteStore(tmp_path)
    try:
        store.put_model("m", b"x")
        record, _ = store.create_collection("c", "m")
        store._connection.pragma("max_page_count", store._connection.pragma("page_count") + 2)
        with pytest.raises(errors.StorageFullError):
            upsert(store, record, new("big", payload=b" " * 1_000_000))
        store._connection.pragma("max_page_count", 1_000_000)
        assert ids(store, record) == []
        assert upsert(store, record, new("a")).version == 1
    finally:
        store.close()
