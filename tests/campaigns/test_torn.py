"""Damaged files, shortly; for longer by hand: `python -m tests.campaigns.torn`."""

import shutil

import apsw
import pytest

from service.errors import DatabaseError, StorageError
from service.store.check import check
from service.store.sqlite import DATABASE_NAME, SQLiteStore
from service.traits import stored_model
from tests.campaigns.torn import LOG_NAME, run
from tests.service.harness import MODEL_FILE, InProcess, assert_problem, features, fill


def test_nothing_is_given_that_was_never_acknowledged(tmp_path):
    outcomes, wrong = run(tmp_path, 60, seed=1)
    assert wrong == []
    assert {"refused", "reported", "whole"} <= outcomes.keys()


@pytest.fixture
def used(tmp_path):
    """A directory with a log of a few writes, as a kill leaves it."""
    store = SQLiteStore(tmp_path / "live")
    for i in range(6):
        store.put_model(f"m{i}", b"x" * 10_000)
    directory = shutil.copytree(tmp_path / "live", tmp_path / "used")
    store.close()
    return directory


def test_pages_have_checksums(used):
    SQLiteStore(used).close()
    data = bytearray((used / DATABASE_NAME).read_bytes())
    assert data[20] == 8  # bytes of each page that are kept for it
    data[data.index(b"x" * 1000) + 500] ^= 1
    (used / DATABASE_NAME).write_bytes(data)
    (database, *_) = check(used)
    assert "its checksum is wrong" in database.faults[0]


@pytest.mark.parametrize("place", ["header", "first frame", "middle"])
def test_a_damaged_log_is_refused_and_kept(used, place):
    log = used / LOG_NAME
    data = bytearray(log.read_bytes())
    at = {"header": 17, "first frame": 100, "middle": len(data) // 2}[place]
    data[at] ^= 1
    log.write_bytes(data)
    for _ in range(2):
        with pytest.raises(DatabaseError, match=rf"{LOG_NAME} is damaged, and \d+ writes behind .* from a backup$"):
            SQLiteStore(used)
    assert log.read_bytes() == data


def test_a_write_that_was_cut_short_is_none(used):
    log = used / LOG_NAME
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    store = SQLiteStore(used)
    assert [model.name for model in store.models()] == [f"m{i}" for i in range(5)]
    store.close()


@pytest.mark.parametrize("length", [1, 31, 32, 33, 1727, 32 + 24 + 4095])
def test_a_log_without_one_whole_frame_has_no_write(used, length):
    """As a machine leaves it that died during the first write to it."""
    log = used / LOG_NAME
    log.write_bytes(log.read_bytes()[:length])
    store = SQLiteStore(used)
    store.put_model("next", b"x")
    assert [model.name for model in store.models()][-1] == "next"
    store.close()


def test_what_stands_behind_in_a_log_that_was_begun_anew_is_none(tmp_path):
    """A log is written from its beginning again once it is in the database: behind that, old writes remain."""
    store = SQLiteStore(tmp_path / "live")
    for i in range(6):
        store.put_model(f"m{i}", b"x" * 10_000)
    store._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    store.put_model("last", b"y")
    directory = shutil.copytree(tmp_path / "live", tmp_path / "used")
    store.close()
    again = SQLiteStore(directory)
    assert len(again.models()) == 7
    again.close()


def test_apsw_without_the_extension_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("service.store.connection._CHECKSUMS", "nothing")
    with pytest.raises(DatabaseError, match="install it from PyPI"):
        SQLiteStore(tmp_path)


def test_a_damaged_model_is_the_servers_fault():
    damaged = bytearray(MODEL_FILE)
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(StorageError, match="model 'm': its stored file is damaged"):
        stored_model("m", bytes(damaged))


def test_damage_that_one_of_several_searches_meets_is_reported_as_such(tmp_path):
    service = InProcess(tmp_path / "data")
    try:
        service.create()
        service.ok("PUT", "/collections/default", {"model": "tiny", "indexes": ["n"]})
        fill(service)
        store = service.app.state.runtime.store
        store._writer.run(lambda db: db.execute("ALTER TABLE postings_1 RENAME TO lost").fetchall())
        only = {"must": [{"key": "n", "range": {"gte": 1}}]}
        assert_problem(service.post("/search", {"query": features(1), "filter": only}), 500, "storage_error")
        assert len(service.ok("POST", "/search", {"query": features(1)})["results"]) == 10
    finally:
        service.close()
