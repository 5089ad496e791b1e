"""Codes of another model for a collection that is in use, gathered beside its own (see `service.store.generations`).

Items are staged in order of insertion. What is deleted meanwhile is noted as gone for both generations, and what is
inserted comes behind all that is staged. So after any number of passes only the last few items are left, and one write
takes these, and makes the staged generation the collection's.
"""

# ruff: noqa: S608  (the only names put into SQL are those of a collection's tables, made from its number)

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import apsw
import numpy as np

from service.errors import StorageError
from service.store import generations, kept, listed, segments
from service.store.interface import Change, CollectionRecord, Finish, Publish, Seqs
from service.store.writer import Writer


class SQLiteStaging:
    """A generation that is being made (see `service.store.interface.Staging`).

    Parameters
    ----------
    writer, read:
        How to write, and how to read.
    record:
        The collection as it is to be.
    live:
        Generations that somebody is at work on; this one leaves them when it ends.
    """

    def __init__(
        self,
        writer: Writer,
        read: Callable[[], AbstractContextManager[apsw.Cursor]],
        record: CollectionRecord,
        live: set[int],
    ) -> None:
        self.record = record
        self._writer = writer
        self._read = read
        self._live = live
        self._through = 0  # all items up to this number are staged

    def rest(self, limit: int) -> tuple[Seqs, list[bytes]]:
        """Sequence numbers and kept features of the next items."""
        with self._read() as db:
            listed.current(db, self.record)
            return self._rest(db, limit)

    def add(self, seqs: Seqs, data: bytes) -> tuple[Seqs, bytes]:
        """Stage the next items; those of them that there still are, and their records."""

        def work(db: apsw.Cursor) -> tuple[Seqs, bytes]:
            self._check(db)
            gone = self._forget_gone(db, int(seqs[-1]))
            useful = ~np.isin(seqs, gone)
            table = np.frombuffer(data, dtype=np.uint8).reshape(len(seqs), -1)
            left, records = (seqs, data) if useful.all() else (seqs[useful], table[useful].tobytes())
            if len(left):
                segments.add(db, self.record, left, records)
            return left, records

        added = self._writer.run(work)
        self._through = int(seqs[-1])
        return added

    def gone(self) -> Seqs:
        """Ascending sequence numbers of deleted items, of which some are staged."""
        with self._read() as db:
            self._check(db)
            return segments.read_gone(db, self.record)

    def codes(self) -> Iterator[tuple[Seqs, bytes]]:
        """What is staged. Each part is read by itself: a long transaction would hold up whoever empties the log."""
        part, first = None, 0
        while True:
            with self._read() as db:
                self._check(db)
                part = segments.read_one(db, self.record, first)
            if part is None:
                return
            yield part
            first = int(part[0][-1]) + 1

    def adopt(self, most: int, finish: Finish, publish: Publish) -> Change | None:
        """Stage the rest, and make all that is staged the collection's, in one write; None if the rest is too much."""

        def work(db: apsw.Cursor) -> Change | None:
            current = self._check(db)
            seqs, records = self._rest(db, most + 1)
            if len(seqs) > most:
                return None
            self._forget_gone(db, None)
            data = finish(seqs, records, segments.read_gone(db, self.record))
            if len(seqs):
                segments.add(db, self.record, seqs, data)
            self._count(db)
            version = generations.adopt(db, current, self.record)
            none = np.empty(0, dtype=np.int64)
            return Change(version, none, none)

        return self._writer.run(work, lambda change: publish(change) if change else None)

    def abandon(self) -> None:
        """Let go of what is staged, if anything is."""
        self._live.discard(self.record.generation)  # also where this fails: then the next one that begins lets go of it
        self._writer.run(lambda db: generations.abandon(db, self.record))

    def _check(self, db: apsw.Cursor) -> CollectionRecord:
        """The collection as it is; UnknownCollectionError, or StorageError if nothing is staged any more."""
        current = listed.current(db, self.record)
        if generations.of(db, current) != self.record:
            raise StorageError(f"collection {current.name!r}: its staged codes are gone")
        return current

    def _rest(self, db: apsw.Cursor, limit: int) -> tuple[Seqs, list[bytes]]:
        rows = kept.read_behind(db, self.record, self._through, limit)
        return np.array([seq for seq, _ in rows], dtype=np.int64), [data for _, data in rows]

    def _forget_gone(self, db: apsw.Cursor, through: int | None) -> Seqs:
        """Take back the notes on items that are not staged yet, up to this one; which they were."""
        table = segments.gone_table(self.record)
        sql = f"DELETE FROM {table} WHERE seq > ?1 AND (?2 IS NULL OR seq <= ?2) RETURNING seq"
        return np.fromiter((seq for (seq,) in list(db.execute(sql, (self._through, through)))), dtype=np.int64)

    def _count(self, db: apsw.Cursor) -> None:
        rows, gone = segments.counts(db, self.record)
        items = db.execute("SELECT items FROM collections WHERE number = ?", (self.record.number,)).get
        if rows - gone != items:
            raise StorageError(
                f"collection {self.record.name!r}: {items} items, but kept features of {rows - gone}: index the items "
                "again"
            )
