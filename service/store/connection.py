"""SQLite connections: how they are set up, the schema, and how SQLite's errors become the service's."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ContextDecorator, closing, contextmanager
from pathlib import Path

import apsw
import apsw.sqlite_extra

from service.errors import DatabaseError, StorageBusyError, StorageError, StorageFullError
from service.store.aliases import ALIASES_SCHEMA
from service.store.discarded import DISCARDED_SCHEMA
from service.store.encodernames import ENCODERS_SCHEMA
from service.store.generations import STAGING_SCHEMA
from service.store.jobs import JOBS_SCHEMA
from service.store.postings import INDEXED_KEYS_SCHEMA
from service.store.replies import REPLIES_SCHEMA
from service.store.upgrade import upgrade
from service.store.wal import writes_behind

log = logging.getLogger(__name__)

SCHEMA_VERSION = 7
_BUSY_MS = 5_000
_WRITER_CACHE_KIB = 32 << 10

# SQLite's extension that gives each page a checksum, and refuses to read one that has another.
_CHECKSUMS = "cksumvfs"
_CHECKSUM_BYTES = 8
_DAMAGED_PAGE = "is not what was written, its checksum is wrong: restore a snapshot or a copy"

_SCHEMA = f"""
CREATE TABLE models (
    name TEXT PRIMARY KEY,
    checksum TEXT NOT NULL,
    created TEXT NOT NULL,
    file BLOB NOT NULL
) STRICT;
CREATE TABLE collections (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL REFERENCES models (name),
    version INTEGER NOT NULL DEFAULT 0,
    items INTEGER NOT NULL DEFAULT 0,
    keep TEXT NOT NULL DEFAULT 'none',
    generation INTEGER NOT NULL DEFAULT 0
) STRICT;
{INDEXED_KEYS_SCHEMA}
{REPLIES_SCHEMA}
{JOBS_SCHEMA}
{ALIASES_SCHEMA}
{STAGING_SCHEMA}
{DISCARDED_SCHEMA}
{ENCODERS_SCHEMA}
PRAGMA user_version = {SCHEMA_VERSION};
"""

# One table per collection. Codes are elsewhere: see `service.store.segments`. `payload` may be long and stands last.
ITEMS_SCHEMA = """
CREATE TABLE {table} (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    payload BLOB
) STRICT;
"""


def open_writer(path: Path, *, existing: bool = False) -> apsw.Connection:
    """Open the database for writing; make it if there is none.

    Parameters
    ----------
    path:
        Its file.
    existing:
        Whether it was there before; if so, none is made in its place.

    Raises
    ------
    DatabaseError
        Missing, damaged, no database of this package, or of a newer version.
    """
    if _size(path) == 0 and (existing or log_bytes(path)):
        state = "empty" if path.exists() else "missing"
        raise DatabaseError(
            f"database {path} is {state}, but other files in {path.parent} say that there was one: put it back from a "
            "backup, or, to start with nothing, choose or make an empty directory"
        )
    load_checksums()
    with database_errors(path):
        connection = apsw.Connection(str(path))
        try:
            # Closing would empty a damaged log into the database, and hide that there is one.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            _set_up(connection, path)
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        except BaseException:
            connection.close()
            raise
    sync_directory(path.parent)
    return connection


def open_reader(path: Path, cache_kib: int) -> apsw.Connection:
    """Open another connection, for reading only, while a writer is open; `cache_kib`: of pages that it keeps."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(_BUSY_MS)
    connection.pragma("cache_size", -cache_kib)
    return connection


def log_bytes(path: Path) -> int:
    """Size of a database's write-ahead log."""
    return _size(path.with_name(path.name + "-wal"))


def empty_log(writer: apsw.Connection) -> bool:
    """Move the whole write-ahead log into the database; whether that was possible. Waits for nobody."""
    writer.set_busy_timeout(0)
    try:
        writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.Error as error:  # nothing is lost: all stays in the log
        log.warning("the write-ahead log could not be emptied: %s", error)
        return False
    finally:
        writer.set_busy_timeout(_BUSY_MS)
    return True


def sync_directory(directory: Path) -> None:
    """Make a new file's name durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into those of a database that cannot be opened.

    Raises
    ------
    DatabaseError
    """
    try:
        yield
    except apsw.Error as error:
        what = f"a page {_DAMAGED_PAGE}" if _is_damage(error) else f"{error}"
        raise DatabaseError(f"database {path}: {what}") from error


class storage_errors(ContextDecorator):  # noqa: N801 (used as a function is)
    """Turn SQLite's errors into the service's. A class, for it is entered many times a search.

    Raises
    ------
    StorageFullError, StorageBusyError, StorageError
    """

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        """Raise the service's error, if there is one of SQLite's."""
        match error:
            case apsw.FullError():
                raise StorageFullError("the disk that holds the data directory is full") from error
            case apsw.BusyError():
                raise StorageBusyError("another program holds a lock on the database") from error
            case apsw.Error() if _is_damage(error):
                raise StorageError(f"a page of the database {_DAMAGED_PAGE}") from error
            case apsw.Error():
                raise StorageError("the database failed; the server's log has the details") from error


def _set_up(connection: apsw.Connection, path: Path) -> None:
    connection.set_busy_timeout(_BUSY_MS)
    version = connection.pragma("user_version")
    _refuse_damaged_log(connection, path)
    if version > SCHEMA_VERSION:
        raise DatabaseError(
            f"database {path} has schema version {version}, this package knows up to {SCHEMA_VERSION}: "
            "upgrade ccq-search"
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise DatabaseError(f"database {path} was not made by ccq-search")
    if version == 0:  # only an empty database can be told to leave room for checksums, and then to give space back
        connection.reserve_bytes(reserve=_CHECKSUM_BYTES)
        connection.pragma("auto_vacuum", "incremental")
    if connection.pragma("journal_mode", "wal") != "wal":
        raise DatabaseError(f"database {path}: this file system does not support SQLite's write-ahead log")
    connection.pragma("synchronous", "full")
    connection.pragma("fullfsync", True)  # macOS: fsync alone does not reach the disk
    connection.pragma("foreign_keys", True)
    connection.pragma("cache_size", -_WRITER_CACHE_KIB)
    if version == 0:
        connection.execute(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT")
    elif version < SCHEMA_VERSION:
        log.info("database %s: upgrading from schema version %d to %d", path, version, SCHEMA_VERSION)
        upgrade(connection)


def _is_damage(error: apsw.Error) -> bool:
    """Whether a page has another checksum than it should."""
    return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_DATA  # which apsw's stubs do not know


def load_checksums() -> None:
    """Let all connections of this process check the checksums of pages, where a database has them."""
    try:
        with closing(apsw.Connection(":memory:")) as connection:
            apsw.sqlite_extra.load(connection, _CHECKSUMS)
    except (LookupError, apsw.sqlite_extra.NotAvailable, apsw.Error) as error:
        raise DatabaseError(f"apsw without SQLite's extension {_CHECKSUMS}: install it from PyPI ({error})") from None


def _refuse_damaged_log(connection: apsw.Connection, path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    if not log_bytes(path):
        return
    frames, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    behind = writes_behind(log, frames)
    if behind > 1:  # one may be what was under way when a process or a machine died
        raise DatabaseError(
            f"database {path}: its write-ahead log {log.name} is damaged, and {behind} writes behind that place would "
            "be lost: put both files back from a backup"
        )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
