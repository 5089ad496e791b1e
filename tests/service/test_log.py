"""The write-ahead log stays short, however reads overlap."""

import threading
import time

import apsw
import pytest

from service.store import sqlite
from service.store.connection import log_bytes
from service.store.interface import NewItem
from service.store.reading import DATABASE_NAME
from service.store.sqlite import SQLiteStore

LOG_BYTES = 500_000


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "LOG_BYTES", LOG_BYTES)
    store = SQLiteStore(tmp_path)
    store.put_model("m", b"model")
    yield store
    store.close()


@pytest.fixture
def record(store):
    return store.create_collection("c", "m")[0]


def write(store, record, times):
    """Write 20 kB each time, which are some 40 in the log; the longest that it was."""
    longest = 0
    for i in range(times):
        store.upsert(record, [NewItem(f"{i % 50}", b"x" * 20_000)], b"12", lambda _: None)
        longest = max(longest, log_bytes(store._path))
    return longest


def test_the_log_stays_short_while_reads_overlap(store, record):
    write(store, record, 10)
    stop, reads, failures = threading.Event(), [], []

    def read():
        try:
            while not stop.is_set():
                with store.snapshot(record) as snapshot:
                    assert snapshot.count() >= 10
                    time.sleep(0.01)
                    reads.append(snapshot.version)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
        time.sleep(0.002)  # so that one always reads
    try:
        longest = write(store, record, 300)  # 12 MB
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert longest < 3 * LOG_BYTES
    assert len(set(reads)) > 20  # they went on all the while


def test_a_long_read_is_waited_for_only_so_long(store, record):
    with store.snapshot(record) as snapshot:
        before = snapshot.count()
        started = time.monotonic()
        assert LOG_BYTES < write(store, record, 16) < 2 * LOG_BYTES
        assert 0.5 < time.monotonic() - started < 5
        assert snapshot.count() == before
    write(store, record, 60)
    assert log_bytes(store._path) < 3 * LOG_BYTES


def test_a_program_that_reads_the_database_besides_does_no_harm(store, record, tmp_path):
    other = apsw.Connection(str(tmp_path / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        other.execute("BEGIN; SELECT count(*) FROM models")
        started = time.monotonic()
        write(store, record, 60)
        assert time.monotonic() - started < 5
    finally:
        other.close()
    write(store, record, 60)
    assert log_bytes(store._path) < 3 * LOG_BYTES
