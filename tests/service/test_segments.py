"""Packed code records: joined, rewritten, checked, and brought over from older databases."""

import threading
from itertools import pairwise

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import errors
from service.store import segments
from service.store.interface import CollectionRecord, NewItem
from service.store.reading import DATABASE_NAME
from service.store.sqlite import SQLiteStore
from tests.service.test_store import held

SIZE = 2


def quiet(_change):
    """Publishes nothing."""


def record_of(seq):
    return seq.to_bytes(SIZE, "little")


class Filled:
    """A store whose items have their sequence numbers as ids and as codes."""

    def __init__(self, directory):
        self.store = SQLiteStore(directory)
        self.store.put_model("m", b"model")
        self.record, _ = self.store.create_collection("c", "m")
        self.last = 0

    def add(self, n):
        seqs = range(self.last + 1, self.last + 1 + n)
        items = [NewItem(str(seq), None) for seq in seqs]
        self.store.upsert(self.record, items, b"".join(map(record_of, seqs)), quiet)
        self.last += n

    def delete(self, seqs):
        self.store.delete_ids(self.record, [str(seq) for seq in seqs], quiet)

    def tidy(self):
        while self.store._writer.run(self.store._tidier):
            pass

    def rows(self):
        with self.store._read() as db:
            return [rows for (rows,) in db.execute("SELECT rows FROM codes_1 ORDER BY first")]

    def assert_holds(self, seqs):
        with self.store.snapshot(self.record) as snapshot:
            assert held(snapshot) == {seq: record_of(seq) for seq in seqs}
            assert snapshot.count() == len(seqs)


@pytest.fixture
def filled(tmp_path):
    filled = Filled(tmp_path)
    yield filled
    filled.store._writer._closed or filled.store.close()


def test_many_small_writes_make_few_segments(filled):
    for n in [1] * 300 + [40] * 50:
        filled.add(n)
        assert len(filled.rows()) < 4 * 16
    filled.assert_holds(range(1, 2301))
    assert len(filled.rows()) < 40


def test_full_segments_are_left_alone(filled, monkeypatch):
    monkeypatch.setattr(segments, "FULL_ROWS", 100)
    for n in (150, 60, 39, 1, 99, 1, 1):
        filled.add(n)
    assert filled.rows() == [150, 100, 100, 1]
    filled.assert_holds(range(1, 352))


def test_segments_with_many_deleted_items_are_rewritten_and_emptied(filled, monkeypatch):
    monkeypatch.setattr(segments, "FULL_ROWS", 100)
    for _ in range(30):
        filled.add(100)
    gone = {*range(1, 201), *range(301, 340), *range(401, 411)}
    filled.delete(gone)
    filled.tidy()
    assert filled.rows() == [100, 61, *[100] * 26]
    with filled.store.snapshot(filled.record) as snapshot:
        assert snapshot.gone().tolist() == list(range(401, 411))
    kept = [seq for seq in range(1, 3001) if seq not in gone]
    filled.assert_holds(kept)
    filled.add(20)
    filled.assert_holds([*kept, *range(3001, 3021)])
    filled.store.close()
    filled.store = SQLiteStore(filled.store._path.parent)
    filled.assert_holds([*kept, *range(3001, 3021)])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(1, 60).map(lambda n: ("add", n)), st.integers(2, 5).map(lambda n: ("delete every", n))),
        max_size=30,
    ),
    st.integers(2, 6),
)
def test_whatever_is_written_is_read(tmp_path_factory, steps, often):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "FULL_ROWS", 64)
        filled = Filled(tmp_path_factory.mktemp("data"))
        try:
            alive = []
            for i, (step, n) in enumerate(steps):
                if step == "add":
                    alive += range(filled.last + 1, filled.last + 1 + n)
                    filled.add(n)
                else:
                    filled.delete(alive[::n])
                    del alive[::n]
                if i % often == 0:
                    filled.tidy()
                filled.assert_holds(alive)
        finally:
            filled.store.close()


def test_space_of_deleted_items_is_given_back(filled):
    filled.store.upsert(filled.record, [NewItem(str(i), b"x" * 10_000) for i in range(2000)], b"12" * 2000, quiet)
    full = filled.store._connection.pragma("page_count")
    filled.delete(range(2000))
    filled.tidy()
    assert filled.store._connection.pragma("page_count") < full / 4


@pytest.mark.parametrize(
    "damage",
    [
        "data = zeroblob(length(data))",
        "data = substr(data, 3)",
        "rows = rows - 1",
        "checksum = checksum + 1",
        "offsets = zeroblob(8)",
        "last = last + 1",
    ],
)
def test_damaged_codes_are_not_served(filled, damage):
    filled.add(10)
    filled.store._writer.run(lambda db: db.execute(f"UPDATE codes_1 SET {damage}"))
    with filled.store.snapshot(filled.record) as snapshot, pytest.raises(errors.StorageError, match=r"'c'.* damaged"):
        list(snapshot.codes())


def test_writes_that_wait_are_committed_together_and_fail_alone(filled):
    inside, go_on, results = threading.Event(), threading.Event(), {}

    def hold(_db):
        inside.set()
        go_on.wait(20)

    def upsert(name, ids):
        try:
            change = filled.store.upsert(filled.record, [NewItem(i, None) for i in ids], b"12" * len(ids), quiet)
            results[name] = change.version
        except errors.StorageError:
            results[name] = "failed"

    together = []
    transact = filled.store._writer._transact
    filled.store._writer._transact = lambda writes: together.append(len(writes)) or transact(writes)
    threads = [threading.Thread(target=filled.store._writer.run, args=(hold,))]
    threads[0].start()
    assert inside.wait(20)
    for name, ids in {"a": ["1", "2"], "twice": ["3", "3"], "b": ["2"]}.items():
        threads.append(threading.Thread(target=upsert, args=(name, ids)))
        threads[-1].start()
        while filled.store._writer._queue.qsize() < len(threads) - 1:
            pass
    go_on.set()
    for thread in threads:
        thread.join()
    assert results == {"a": 1, "twice": "failed", "b": 2}
    assert 3 in together
    with filled.store.snapshot(filled.record) as snapshot:
        assert [item_id for _, item_id, _ in snapshot.scan(payloads=False)] == ["1", "2"]
        assert snapshot.version == 2


def test_a_write_too_large_for_the_disk_does_not_fail_those_that_wait_with_it(filled):
    filled.add(1)
    connection = filled.store._connection
    inside, go_on, results = threading.Event(), threading.Event(), {}

    def hold(_db):
        inside.set()
        go_on.wait(20)
        connection.pragma("max_page_count", connection.pragma("page_count") + 30)

    def upsert(name, payload):
        try:
            filled.store.upsert(filled.record, [NewItem(name, payload)], b"12", quiet)
            results[name] = "stored"
        except errors.StorageFullError:
            results[name] = "full"

    threads = [threading.Thread(target=filled.store._writer.run, args=(hold,))]
    threads[0].start()
    assert inside.wait(20)
    for name, payload in {"before": b"1", "big": b"x" * 1_000_000, "behind": b"1"}.items():
        threads.append(threading.Thread(target=upsert, args=(name, payload)))
        threads[-1].start()
        while filled.store._writer._queue.qsize() < len(threads) - 1:
            pass
    go_on.set()
    for thread in threads:
        thread.join()
    assert results == {"before": "stored", "big": "full", "behind": "stored"}


def test_writes_are_published_in_the_order_of_their_versions(filled):
    published = []

    def write(n):
        for i in range(20):
            filled.store.upsert(
                filled.record, [NewItem(f"{n} {i}", None)], b"12", lambda change: published.append(change)
            )

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [change.version for change in published] == list(range(1, 161))
    assert all(a.added[-1] < b.added[0] for a, b in pairwise(published))


def old_database(path, rows):
    """A database as version 1 of the schema had it."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(
        """
        CREATE TABLE models (name TEXT PRIMARY KEY, checksum TEXT NOT NULL, created TEXT NOT NULL, file BLOB NOT NULL)
            STRICT;
        CREATE TABLE collections (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
            model TEXT NOT NULL REFERENCES models (name), version INTEGER NOT NULL DEFAULT 0) STRICT;
        CREATE TABLE items_1 (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, record BLOB NOT NULL,
            payload BLOB) STRICT;
        INSERT INTO models VALUES ('m', 'c', 'now', x'01');
        INSERT INTO collections VALUES (1, 'c', 'm', 7);
        PRAGMA user_version = 1;
        """
    )
    connection.executemany("INSERT INTO items_1 VALUES (?, ?, ?, ?)", rows)
    connection.close()


def test_a_database_of_version_1_is_brought_up_to_date(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "FULL_ROWS", 3)
    seqs = [2, 3, 4, 7, 9, 100_000]
    old_database(tmp_path / DATABASE_NAME, [(seq, f"id {seq}", record_of(seq % 256), b"{}") for seq in seqs])
    for _ in range(2):
        store = SQLiteStore(tmp_path)
        record = CollectionRecord(1, "c", "m")
        assert store.collections() == [record]
        with store.snapshot(record) as snapshot:
            assert snapshot.version == 7
            assert held(snapshot) == {seq: record_of(seq % 256) for seq in seqs}
            assert snapshot.count() == 6
            assert snapshot.item("id 9").payload == b"{}"
            assert snapshot.item("id 9").version == 7  # 0 would be that of no item
        store.close()
    store = SQLiteStore(tmp_path)
    assert store.upsert(record, [NewItem("new", None)], b"12", quiet).added.tolist() == [100_001]
    store.close()


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(tmp_path, monkeypatch):
    old_database(tmp_path / DATABASE_NAME, [(1, "a", b"12", None)])
    with monkeypatch.context() as patch:
        patch.setattr(segments, "insert", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            SQLiteStore(tmp_path)
    store = SQLiteStore(tmp_path)
    with store.snapshot(CollectionRecord(1, "c", "m")) as snapshot:
        assert held(snapshot) == {1: b"12"}
    store.close()


def test_offsets_reach_over_gaps():
    seqs = np.array([5, 6, 1 << 31], dtype=np.int64)
    connection = apsw.Connection(":memory:")
    record = CollectionRecord(1, "c", "m")
    connection.execute(segments.schema(record))
    segments.insert(connection.cursor(), record, seqs, b"abcdef")
    ((again, data),) = segments.read(connection.cursor(), record)
    assert again.tolist() == seqs.tolist()
    assert data == b"abcdef"
