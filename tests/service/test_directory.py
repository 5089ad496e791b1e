"""A data directory that has lost its database is not taken for a new one."""

import stat

import pytest

from service import errors, keys
from service.store.directory import LOCK_NAME
from service.store.reading import DATABASE_NAME
from service.store.sqlite import SQLiteStore


@pytest.fixture
def used(tmp_path):
    """A directory that was in use once."""
    store = SQLiteStore(tmp_path)
    store.put_model("m", b"model")
    store.close()
    return tmp_path


@pytest.mark.parametrize("state", ["missing", "empty"])
def test_a_lost_database_is_told(used, state):
    database = used / DATABASE_NAME
    content = database.read_bytes()
    database.unlink() if state == "missing" else database.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(errors.StartError, match=rf"{database} is {state}, but .* put it back from a backup"):
            SQLiteStore(used)
    assert not database.exists() or not database.read_bytes()
    database.write_bytes(content)
    store = SQLiteStore(used)
    assert [model.name for model in store.models()] == ["m"]
    store.close()


def test_a_log_without_its_database_is_kept(tmp_path):
    log = tmp_path / (DATABASE_NAME + "-wal")
    log.write_bytes(b"what was written last")
    with pytest.raises(errors.DatabaseError, match="is missing"):
        SQLiteStore(tmp_path)
    assert log.read_bytes() == b"what was written last"


def test_a_start_that_failed_leaves_the_directory_new(tmp_path):
    (tmp_path / DATABASE_NAME).write_bytes(b"x" * 10_000)
    with pytest.raises(errors.DatabaseError, match="not a database"):
        SQLiteStore(tmp_path)
    (tmp_path / DATABASE_NAME).unlink()
    SQLiteStore(tmp_path).close()


def test_a_start_that_was_cut_short_leaves_the_directory_new(tmp_path):
    (tmp_path / LOCK_NAME).touch()
    (tmp_path / DATABASE_NAME).touch()
    SQLiteStore(tmp_path).close()


@pytest.mark.parametrize("make", [lambda path: SQLiteStore(path).close(), lambda path: keys.changed(path).__enter__()])
def test_a_directory_that_is_made_is_for_its_owner_alone(tmp_path, make):
    new, there = tmp_path / "a/new", tmp_path / "there"
    there.mkdir(0o755)
    make(new)
    make(there)
    assert stat.S_IMODE(new.stat().st_mode) == 0o700
    assert stat.S_IMODE(there.stat().st_mode) == 0o755
