"""The database as it is read: by the server, and by processes beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from service.store import encodernames, listed, postings
from service.store.connection import storage_errors
from service.store.interface import CollectionRecord, ModelRecord
from service.store.readers import Readers
from service.store.snapshot import SQLiteSnapshot

DATABASE_NAME = "ccq.sqlite"


class SQLiteReading:
    """What can be read of a store (see `service.store.interface.Store`).

    Parameters
    ----------
    path:
        The database, which exists.
    cache_bytes:
        Memory for pages that were read before, at most and about.
    """

    def __init__(self, path: Path, cache_bytes: int) -> None:
        self._readers = Readers(path, cache_bytes)

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
            raise listed.unknown_model(db, name)

    def model_file(self, name: str) -> tuple[ModelRecord, bytes]:
        """A model and its file, of one moment; UnknownModelError if there is none of this name."""
        with self._read() as db:
            sql = "SELECT name, checksum, length(file), created, file FROM models WHERE name = ?"
            for *record, file in db.execute(sql, (name,)):
                return ModelRecord(*record), file
            raise listed.unknown_model(db, name)

    def collections(self) -> list[CollectionRecord]:
        """All collections, by name."""
        with self._read() as db:
            return listed.every(db)

    def indexed_keys(self, record: CollectionRecord) -> list[str]:
        """The indexed payload keys, in order."""
        with self._read() as db:
            return list(postings.keys_of(db, record))

    def encoders(self, record: CollectionRecord) -> dict[str, str]:
        """Names of a collection's encoders, by modality."""
        with self._read() as db:
            return encodernames.of(db, record)

    def size(self) -> int:
        """About how many bytes everything takes."""
        with self._read() as db:
            return int(db.execute("PRAGMA page_count").get * db.execute("PRAGMA page_size").get)

    def lend(self) -> Callable[[], None]:
        """Admit a read that another process does, until what is returned is called; see `Store`."""
        return self._readers.lend()

    @contextmanager
    def snapshot(self, record: CollectionRecord, *, quick: bool = False) -> Iterator[SQLiteSnapshot]:
        """The collection as it is now; UnknownCollectionError if it is gone. `quick`: see `Store`."""
        with self._read(wait=not quick) as db:
            yield SQLiteSnapshot(db, record, quick)

    @contextmanager
    def _read(self, *, wait: bool = True) -> Iterator[apsw.Cursor]:
        """A read transaction on a connection of its own."""
        with storage_errors(), self._readers.read(wait=wait) as db:
            yield db
