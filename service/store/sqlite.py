"""The embedded store: one SQLite database per data directory, one writer, any number of readers.

Each write is one transaction, synced to disk before it returns. Readers see the last commit, and wait for nobody but a
moment now and then (see `service.store.readers`).
"""

# ruff: noqa: S608  (the only name put into SQL is that of a collection's table, made from its number)

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import apsw
import numpy as np

from service.errors import (
    CollectionConflictError,
    ModelInUseError,
    StorageError,
    UnknownCollectionError,
    UnknownModelError,
)
from service.store.connection import ITEMS_SCHEMA, empty_log, log_bytes, open_writer, storage_errors
from service.store.directory import DirectoryLock
from service.store.interface import Change, CollectionRecord, ModelRecord, NewItem, Seqs
from service.store.readers import Readers
from service.store.snapshot import SQLiteSnapshot, items_table

DATABASE_NAME = "ccq.sqlite"
LOG_BYTES = 64 << 20


class SQLiteStore:
    """The store of a data directory (see `service.store.interface.Store`).

    Parameters
    ----------
    directory:
        Made if missing, and locked until `close`.

    Raises
    ------
    DirectoryInUseError, DatabaseError, StartError
    """

    def __init__(self, directory: Path) -> None:
        self._lock = DirectoryLock(directory)
        self._path = directory / DATABASE_NAME
        try:
            self._writer = open_writer(self._path, existing=self._lock.signed)
            self._lock.sign()
        except BaseException:
            self._lock.release()
            raise
        self._writing = threading.Lock()
        self._readers = Readers(self._path)
        self._log_limit = LOG_BYTES
        self._closed = False

    def close(self) -> None:
        """Finish the write in progress and let go. Snapshots that are still open end when they end."""
        with self._writing:
            self._closed = True
            self._readers.close()
            self._writer.close()
        self._lock.release()

    # -- models ----------------------------------------------------------------------------------------------------

    def put_model(self, name: str, file: bytes) -> Literal["created", "replaced", "unchanged"]:
        """Store a model file under a name; ModelInUseError if a collection uses another file under this name."""
        checksum = hashlib.sha256(file).hexdigest()
        with self._write() as db:
            known = db.execute("SELECT checksum FROM models WHERE name = ?", (name,)).get
            if known == checksum:
                return "unchanged"
            if known is not None:
                self._refuse_used(db, name, "replaced by another file")
            db.execute(
                "INSERT INTO models (name, checksum, created, file) VALUES (?1, ?2, ?3, ?4) "
                "ON CONFLICT (name) DO UPDATE SET checksum = ?2, created = ?3, file = ?4",
                (name, checksum, datetime.now(UTC).isoformat(timespec="seconds"), file),
            )
            return "created" if known is None else "replaced"

    def models(self) -> list[ModelRecord]:
        """All models, by name."""
        with self._read() as db:
            rows = db.execute("SELECT name, checksum, length(file), created FROM models ORDER BY name")
            return [ModelRecord(*row) for row in rows]

    def model(self, name: str) -> ModelRecord:
        """One model; UnknownModelError if there is none of this name."""
        with self._read() as db:
            for row in db.execute("SELECT name, checksum, length(file), created FROM models WHERE name = ?", (name,)):
                return ModelRecord(*row)
        raise UnknownModelError(name)

    def model_file(self, name: str) -> tuple[ModelRecord, bytes]:
        """A model and its file, of one moment; UnknownModelError if there is none of this name."""
        with self._read() as db:
            sql = "SELECT name, checksum, length(file), created, file FROM models WHERE name = ?"
            for *record, file in db.execute(sql, (name,)):
                return ModelRecord(*record), file
        raise UnknownModelError(name)

    def delete_model(self, name: str) -> None:
        """Delete a model; UnknownModelError, or ModelInUseError naming the collections."""
        with self._write() as db:
            self._refuse_used(db, name, "deleted")
            db.execute("DELETE FROM models WHERE name = ?", (name,))
            if not self._writer.changes():
                raise UnknownModelError(name)

    @staticmethod
    def _refuse_used(db: apsw.Cursor, model: str, what: str) -> None:
        users = [name for (name,) in db.execute("SELECT name FROM collections WHERE model = ? ORDER BY name", (model,))]
        if users:
            raise ModelInUseError(f"model {model!r} cannot be {what}: used by collection {', '.join(map(repr, users))}")

    # -- collections -----------------------------------------------------------------------------------------------

    def create_collection(self, name: str, model: str) -> tuple[CollectionRecord, bool]:
        """The collection, and whether it is new; UnknownModelError, or CollectionConflictError."""
        with self._write() as db:
            for number, known in db.execute("SELECT number, model FROM collections WHERE name = ?", (name,)):
                if known != model:
                    raise CollectionConflictError(f"collection {name!r} exists with model {known!r}, not {model!r}")
                return CollectionRecord(number, name, model), False
            if not db.execute("SELECT count(*) FROM models WHERE name = ?", (model,)).get:
                raise UnknownModelError(model)
            db.execute("INSERT INTO collections (name, model) VALUES (?, ?)", (name, model))
            record = CollectionRecord(self._writer.last_insert_rowid(), name, model)
            db.execute(ITEMS_SCHEMA.format(table=items_table(record)))
            return record, True

    def collections(self) -> list[CollectionRecord]:
        """All collections, by name."""
        with self._read() as db:
            rows = db.execute("SELECT number, name, model FROM collections ORDER BY name")
            return [CollectionRecord(*row) for row in rows]

    def drop_collection(self, record: CollectionRecord) -> None:
        """Delete a collection and its items; UnknownCollectionError if it is gone already."""
        with self._write() as db:
            self._next_version(db, record)
            db.execute("DELETE FROM collections WHERE number = ?", (record.number,))
            db.execute(f"DROP TABLE {items_table(record)}")

    # -- items -----------------------------------------------------------------------------------------------------

    def upsert(self, record: CollectionRecord, items: Sequence[NewItem]) -> Change:
        """Store items with distinct ids, in this order; those whose id is known replace the old ones."""
        table = items_table(record)
        with self._write() as db:
            version = self._next_version(db, record)
            removed = db.executemany(f"DELETE FROM {table} WHERE id = ? RETURNING seq", ((item.id,) for item in items))
            gone = _seqs(removed)
            # AUTOINCREMENT counts on from the highest number ever given, deleted ones too.
            last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get or 0
            db.executemany(
                f"INSERT INTO {table} (seq, id, record, payload) VALUES (?, ?, ?, ?)",
                ((seq, item.id, item.record, item.payload) for seq, item in enumerate(items, last + 1)),
            )
            return Change(version, np.arange(last + 1, last + 1 + len(items), dtype=np.int64), gone)

    def delete_ids(self, record: CollectionRecord, ids: Iterable[str]) -> Change:
        """Delete the items with these ids that exist; UnknownCollectionError if the collection is gone."""
        return self._delete(record, "id", ids)

    def delete_seqs(self, record: CollectionRecord, seqs: Iterable[int]) -> Change:
        """Delete the items with these sequence numbers that exist; raises what `delete_ids` raises."""
        return self._delete(record, "seq", seqs)

    def _delete(self, record: CollectionRecord, column: str, values: Iterable[str] | Iterable[int]) -> Change:
        sql = f"DELETE FROM {items_table(record)} WHERE {column} = ? RETURNING seq"
        with self._write() as db:
            version = self._next_version(db, record)
            return Change(version, _seqs([]), _seqs(db.executemany(sql, ((value,) for value in values))))

    @contextmanager
    def snapshot(self, record: CollectionRecord) -> Iterator[SQLiteSnapshot]:
        """The collection as it is now; UnknownCollectionError if it is gone."""
        with self._read() as db:
            yield SQLiteSnapshot(db, record)

    # -- transactions ----------------------------------------------------------------------------------------------

    @staticmethod
    def _next_version(db: apsw.Cursor, record: CollectionRecord) -> int:
        sql = "UPDATE collections SET version = version + 1 WHERE number = ? RETURNING version"
        version = db.execute(sql, (record.number,)).get
        if not isinstance(version, int):
            raise UnknownCollectionError(record.name)
        return version

    @contextmanager
    def _write(self) -> Iterator[apsw.Cursor]:
        """A write transaction: committed and synced at the end, undone by any error."""
        with self._writing, storage_errors():
            if self._closed:
                raise StorageError("the store is closed")
            self._bound_log()
            db = self._writer.cursor()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def _read(self) -> Iterator[apsw.Cursor]:
        """A read transaction on a connection of its own."""
        with storage_errors(), self._readers.read() as db:
            yield db

    def _bound_log(self) -> None:
        """Empty the write-ahead log if it is long, which takes a moment without readers.

        They get the longer for it the longer the log is; and if they need more, it is tried again after as much more.
        """
        size = log_bytes(self._path)
        if size < self._log_limit:
            return
        with self._readers.held(size / LOG_BYTES) as alone:
            emptied = alone and empty_log(self._writer)
        self._log_limit = LOG_BYTES if emptied else size + LOG_BYTES


def _seqs(rows: Iterable[tuple[int]]) -> Seqs:
    """Sequence numbers from rows, ascending."""
    return np.sort(np.fromiter((seq for (seq,) in rows), dtype=np.int64))
