"""A data directory that has lost its database is not taken for a new one."""

import pytest

from service import errors
from service.store.directory import LOCK_NAME
from service.store.sqlite import DATABASE_NAME, SQLiteStore


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
