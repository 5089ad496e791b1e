"""The embedded store: one SQLite database per data directory, one writer, any number of readers.

A write is synced to disk before it returns, together with those that came at the same time. Readers see the last
commit, and wait for nobody but a moment now and then (see `service.store.readers`).
"""

# ruff: noqa: S608  (the only name put into SQL is that of a collection's table, made from its number)

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

import apsw
import numpy as np

from service.errors import (
    CollectionConflictError,
    ModelInUseError,
    UnknownItemError,
    VersionMismatchError,
)
from service.store import backup, encodernames, generations, kept, listed, postings, replies, segments
from service.store.aliases import AliasTable, refuse_alias, refuse_aliased
from service.store.connection import ITEMS_SCHEMA, database_errors, empty_log, log_bytes, open_writer, storage_errors
from service.store.directory import DirectoryLock
from service.store.interface import (
    ANY,
    AliasStore,
    Change,
    CollectionRecord,
    Copied,
    ModelChanged,
    NewItem,
    Publish,
    Seqs,
    Snapshot,
    Terms,
)
from service.store.jobrecords import JobStore
from service.store.jobs import JobTable
from service.store.reading import DATABASE_NAME, SQLiteReading
from service.store.snapshot import SQLiteSnapshot, items_table
from service.store.staging import SQLiteStaging
from service.store.tidier import Tidier
from service.store.writer import Writer

CACHE_BYTES = 64 << 20

T = TypeVar("T")
W = TypeVar("W", Change, Change | None)
Work = Callable[[apsw.Cursor, CollectionRecord], T]

LOG_BYTES = 64 << 20


class SQLiteStore(SQLiteReading):
    """The store of a data directory (see `service.store.interface.Store`).

    Parameters
    ----------
    directory:
        Made if missing, and locked until `close`.
    cache_bytes:
        Memory for pages that were read before, at most and about.

    Raises
    ------
    DirectoryInUseError, DatabaseError, StartError
    """

    jobs: JobStore
    aliases: AliasStore

    def __init__(self, directory: Path, cache_bytes: int = CACHE_BYTES) -> None:
        self._lock = DirectoryLock(directory)
        self._path = directory / DATABASE_NAME
        try:
            connection = _opened(self._path, existing=self._lock.signed)
            self._lock.sign()
        except BaseException:
            self._lock.release()
            raise
        self._connection = connection
        super().__init__(self._path, cache_bytes)
        self._log_limit = LOG_BYTES
        self._tidier = Tidier()
        self._live: set[int] = set()  # generations that somebody is at work on; for the writing thread
        self._writer = Writer(connection, self._bound_log, self._tidier)
        self.jobs = JobTable(self._writer.run, self._read)
        self.aliases = AliasTable(self._writer.run, self._read)

    def close(self) -> None:
        """Finish the writes that were accepted and let go. Snapshots that are still open end when they end."""
        self._writer.close()
        self._readers.close()
        self._connection.close()  # the last one: only one that may write can empty the log
        self._lock.release()

    # -- models ----------------------------------------------------------------------------------------------------

    def put_model(self, name: str, file: bytes) -> Literal["created", "replaced", "unchanged"]:
        """Store a model file under a name; ModelInUseError if a collection uses another file under this name."""
        checksum = hashlib.sha256(file).hexdigest()

        def work(db: apsw.Cursor) -> Literal["created", "replaced", "unchanged"]:
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

        return self._writer.run(work)

    def delete_model(self, name: str) -> None:
        """Delete a model; UnknownModelError, or ModelInUseError naming the collections."""

        def work(db: apsw.Cursor) -> None:
            self._refuse_used(db, name, "deleted")
            if not db.execute("DELETE FROM models WHERE name = ? RETURNING name", (name,)).fetchall():
                raise listed.unknown_model(db, name)

        self._writer.run(work)

    @staticmethod
    def _refuse_used(db: apsw.Cursor, model: str, what: str) -> None:
        using = [name for (name,) in db.execute("SELECT name FROM collections WHERE model = ?", (model,))]
        users = sorted({*using, *generations.users(db, model)})
        if users:
            raise ModelInUseError(f"model {model!r} cannot be {what}: used by collection {', '.join(map(repr, users))}")

    # -- collections -----------------------------------------------------------------------------------------------

    def create_collection(
        self,
        name: str,
        model: str,
        keys: Sequence[str] = (),
        keep: str | None = None,
        encoders: Mapping[str, str] | None = None,
    ) -> tuple[CollectionRecord, bool]:
        """The collection, and whether it is new; UnknownModelError, or CollectionConflictError."""

        def work(db: apsw.Cursor) -> tuple[CollectionRecord, bool]:
            for record in [record for record in listed.every(db) if record.name == name]:
                for what, known, wanted in (("model", record.model, model), ("keep", record.keep, keep)):
                    if wanted is not None and known != wanted:
                        raise CollectionConflictError(
                            f"collection {name!r} exists with {what} {known!r}, not {wanted!r}"
                        )
                return record, False
            refuse_alias(db, name, "expected another name for the collection")
            if not db.execute("SELECT count(*) FROM models WHERE name = ?", (model,)).get:
                raise listed.unknown_model(db, model)
            sql = "INSERT INTO collections (name, model, keep) VALUES (?, ?, ?) RETURNING number"
            kind = keep or "none"
            record = CollectionRecord(db.execute(sql, (name, model, kind)).get, name, model, kind)
            db.execute(ITEMS_SCHEMA.format(table=items_table(record)))
            db.execute(segments.schema(record) + postings.schema(record) + kept.schema(record))
            self._insert_keys(db, record, set(keys))
            encodernames.put(db, record, encoders or {})
            return record, True

        return self._writer.run(work)

    def index_keys(self, record: CollectionRecord, keys: Sequence[str]) -> bool:
        """Index exactly these payload keys; whether that is a change."""

        def work(db: apsw.Cursor, record: CollectionRecord) -> bool:
            known = postings.keys_of(db, record)
            for path in known.keys() - set(keys):
                postings.drop(db, record, known[path])
                db.execute("DELETE FROM indexed_keys WHERE number = ?", (known[path],))
            new = set(keys) - known.keys()
            if new:
                self._insert_keys(db, record, new)
                numbers = {path: number for path, number in postings.keys_of(db, record).items() if path in new}
                reading = self._connection.cursor()
                texts = reading.execute(f"SELECT seq, id, payload FROM {items_table(record)} ORDER BY seq")
                postings.add(db, record, numbers, texts)
            return set(keys) != known.keys()

        return self._writer.run(self._known(record, work))

    @staticmethod
    def _insert_keys(db: apsw.Cursor, record: CollectionRecord, paths: set[str]) -> None:
        sql = "INSERT INTO indexed_keys (collection, path) VALUES (?, ?)"
        db.executemany(sql, ((record.number, path) for path in sorted(paths)))

    def set_encoders(self, record: CollectionRecord, names: Mapping[str, str]) -> None:
        """Let a collection have exactly these encoders."""
        self._writer.run(self._known(record, lambda db, record: encodernames.put(db, record, names)))

    def drop_collection(self, record: CollectionRecord) -> None:
        """Delete a collection and its items; UnknownCollectionError, or AliasConflictError."""

        def work(db: apsw.Cursor, record: CollectionRecord) -> None:
            refuse_aliased(db, record)
            db.execute("DELETE FROM collections WHERE number = ?", (record.number,))
            generations.abandon_of(db, record)
            db.execute("DELETE FROM indexed_keys WHERE collection = ?", (record.number,))
            encodernames.drop(db, record)
            replies.drop(db, record)
            tables = [items_table, segments.codes_table, segments.gone_table, postings.postings_table]
            for name in [*tables, kept.kept_table] if kept.keeps(record) else tables:
                db.execute(f"DROP TABLE {name(record)}")

        self._writer.run(self._known(record, work))

    # -- items -----------------------------------------------------------------------------------------------------

    def upsert(
        self, record: CollectionRecord, items: Sequence[NewItem], codes: bytes, publish: Publish, terms: Terms = ANY
    ) -> Change:
        """Store items with distinct ids, in this order; those whose id is known replace the old ones."""
        table = items_table(record)
        encoded = record.generation

        def work(db: apsw.Cursor, record: CollectionRecord) -> Change:
            if record.generation != encoded:
                raise ModelChanged
            gone = self._remove(db, record, "id", [item.id for item in items])
            version = self._next_version(db, record, len(items) - len(gone))
            # AUTOINCREMENT counts on from the highest number ever given, deleted ones too.
            first = (db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get or 0) + 1
            db.executemany(
                f"INSERT INTO {table} (seq, id, version, payload) VALUES (?, ?, ?, ?)",
                ((seq, item.id, version, item.payload) for seq, item in enumerate(items, first)),
            )
            segments.append(db, record, first, len(items), codes)
            if kept.keeps(record):
                kept.add(db, record, ((seq, item.kept) for seq, item in enumerate(items, first)))
            keys = postings.keys_of(db, record)
            if keys:
                texts = ((seq, item.id, item.payload) for seq, item in enumerate(items, first))
                postings.add(db, record, keys, texts)
            return Change(version, np.arange(first, first + len(items), dtype=np.int64), gone)

        return self._writer.run(self._on(terms, record, work), publish)

    def delete_ids(self, record: CollectionRecord, ids: Sequence[str], publish: Publish, terms: Terms = ANY) -> Change:
        """Delete the items with these ids that exist."""
        return self._writer.run(
            self._on(terms, record, lambda db, record: self._delete(db, record, "id", ids)), publish
        )

    def delete_where(
        self,
        record: CollectionRecord,
        matches: Callable[[Snapshot], Iterable[int]],
        publish: Publish,
        terms: Terms = ANY,
    ) -> Change | None:
        """Delete the items whose sequence numbers `matches` finds; None if it finds none."""

        def work(db: apsw.Cursor, record: CollectionRecord) -> Change | None:
            seqs = [int(seq) for seq in matches(SQLiteSnapshot(db, record))]  # not numbers of NumPy
            return self._delete(db, record, "seq", seqs) if seqs else None

        return self._writer.run(self._on(terms, record, work), lambda change: publish(change) if change else None)

    def set_payload(
        self, record: CollectionRecord, item_id: str, payload: bytes | None, publish: Publish, terms: Terms = ANY
    ) -> Change:
        """Replace the payload of an item, which keeps its place; UnknownItemError if there is none of this id."""
        table = items_table(record)

        def work(db: apsw.Cursor, record: CollectionRecord) -> Change:
            found = db.execute(f"SELECT seq, payload FROM {table} WHERE id = ?", (item_id,)).get
            if found is None:
                raise UnknownItemError(item_id, record.name)
            seq, old = found
            version = self._next_version(db, record, 0)
            db.execute(f"UPDATE {table} SET version = ?, payload = ? WHERE seq = ?", (version, payload, seq))
            keys = postings.keys_of(db, record)
            if keys:
                postings.remove(db, record, keys, [(seq, item_id, old)])
                postings.add(db, record, keys, [(seq, item_id, payload)])
            none = np.empty(0, dtype=np.int64)
            return Change(version, none, none)

        return self._writer.run(self._on(terms, record, work), publish)

    # -- another model ---------------------------------------------------------------------------------------------

    def stage(self, record: CollectionRecord, model: str) -> SQLiteStaging:
        """Begin to gather codes of another model; see `Store`."""

        def work(db: apsw.Cursor, record: CollectionRecord) -> CollectionRecord:
            return generations.begin(db, record, model, self._live)

        staged = self._writer.run(self._known(record, work), lambda staged: self._live.add(staged.generation))
        return SQLiteStaging(self._writer, self._read, staged, self._live)

    # -- all of it -------------------------------------------------------------------------------------------------

    def exclusively(self, work: Callable[[], T]) -> T:
        """Do something between two writes: what it returns; raises what it raises."""
        done: list[T] = []
        # Last: those that were committed in the same moment are in the store, and have to be in memory too.
        self._writer.run(lambda _: None, lambda _: done.append(work()), last=True)
        return done[0]

    def copy(self, file: Path, check: Callable[[], None]) -> Copied:
        """Copy everything to a new file, as it is at one moment; see `service.store.backup`."""
        with storage_errors():
            return backup.copy(self._connection, self.exclusively, file, check)

    # -- transactions ----------------------------------------------------------------------------------------------

    @staticmethod
    def _known(record: CollectionRecord, work: Work[T]) -> Callable[[apsw.Cursor], T]:
        """The same work, for a collection that exists, as it is now; UnknownCollectionError otherwise."""
        return lambda db: work(db, listed.current(db, record))

    @classmethod
    def _on(cls, terms: Terms, record: CollectionRecord, work: Work[W]) -> Callable[[apsw.Cursor], W]:
        """The same work, for a collection that exists, if the terms hold; see `service.store.interface.Store`."""

        def on_terms(db: apsw.Cursor, record: CollectionRecord) -> W:
            if terms.once is not None:
                replies.check(db, record.number, terms.once)
            for item_id, expected in terms.versions.items():
                current = db.execute(f"SELECT version FROM {items_table(record)} WHERE id = ?", (item_id,)).get or 0
                if current != expected:
                    raise VersionMismatchError(item_id, expected, current)
            change = work(db, record)
            if terms.once is not None:
                replies.keep(db, record.number, terms.once, change)
            return change

        return cls._known(record, on_terms)

    @staticmethod
    def _next_version(db: apsw.Cursor, record: CollectionRecord, more: int) -> int:
        """The version of a write that leaves the collection with so many more items."""
        sql = "UPDATE collections SET version = version + 1, items = items + ? WHERE number = ? RETURNING version"
        return int(db.execute(sql, (more, record.number)).get)

    def _delete(self, db: apsw.Cursor, record: CollectionRecord, column: str, values: Sequence[str | int]) -> Change:
        gone = self._remove(db, record, column, values)
        return Change(self._next_version(db, record, -len(gone)), np.empty(0, dtype=np.int64), gone)

    @staticmethod
    def _remove(db: apsw.Cursor, record: CollectionRecord, column: str, values: Sequence[str | int]) -> Seqs:
        """Delete items; ascending sequence numbers of those that there were."""
        keys = postings.keys_of(db, record)
        wanted = "seq, id, payload" if keys else "seq, id, NULL"
        sql = f"DELETE FROM {items_table(record)} WHERE {column} = ? RETURNING {wanted}"
        texts = list(db.executemany(sql, ((value,) for value in values)))
        gone = np.sort(np.fromiter((seq for seq, _, _ in texts), dtype=np.int64))
        generations.bury(db, record, gone)
        if kept.keeps(record):
            kept.remove(db, record, gone)
        if keys:
            postings.remove(db, record, keys, texts)
        return gone

    def _bound_log(self) -> None:
        """Empty the write-ahead log if it is long, which takes a moment without readers.

        They get the longer for it the longer the log is; and if they need more, it is tried again after as much more.
        """
        size = log_bytes(self._path)
        if size < self._log_limit:
            return
        with self._readers.held(size / LOG_BYTES) as alone:
            emptied = alone and empty_log(self._connection)
        self._log_limit = LOG_BYTES if emptied else size + LOG_BYTES


def _opened(path: Path, existing: bool) -> apsw.Connection:
    """A connection for writing, see `open_writer`; what was staged when the store was used last is let go of."""
    connection = open_writer(path, existing=existing)
    try:
        # On a full disk it stays until the next start, or until the collection is encoded anew again.
        with database_errors(path), suppress(apsw.FullError), connection:
            generations.abandon_all(connection.cursor())
    except BaseException:
        connection.close()
        raise
    return connection
