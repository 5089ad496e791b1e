"""One collection as a read transaction sees it."""

# ruff: noqa: S608  (the only name put into SQL is that of a collection's table, made from its number)

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import apsw
import numpy as np

from service.errors import UnknownCollectionError, WouldTakeLongError
from service.store import kept, postings, segments
from service.store.connection import storage_errors
from service.store.interface import CollectionRecord, ItemRow, Seqs

T = TypeVar("T")

QUICK_SECONDS = 0.05
_QUICK_POSTINGS = 100_000
_TOGETHER = 64  # rows that are looked up by one statement: one for each takes half as long again


def items_table(record: CollectionRecord) -> str:
    """Name of the table that holds a collection's items."""
    return f"items_{record.number}"


class SQLiteSnapshot:
    """A collection at one moment (see `service.store.interface.Snapshot`).

    Its errors are the service's: a search keeps what is wrong with it as its answer, before the transaction ends.

    Parameters
    ----------
    db:
        Cursor of a read transaction; its first read, which fixes the moment, is done here.
    record:
        The collection; UnknownCollectionError if it is gone.
    quick:
        Raise WouldTakeLongError instead of reading for long.

    Attributes
    ----------
    record:
        The collection as it is at this moment.
    """

    def __init__(self, db: apsw.Cursor, record: CollectionRecord, quick: bool = False) -> None:
        found = db.execute("SELECT version, model, generation FROM collections WHERE number = ?", (record.number,)).get
        if found is None:
            raise UnknownCollectionError(record.name)
        self.version, model, generation = found
        self.record = replace(record, model=model, generation=generation)
        self._db = db
        self._until = time.monotonic() + QUICK_SECONDS if quick else math.inf
        self._most = _QUICK_POSTINGS if quick else -1
        self._record = record
        self._table = items_table(record)

    def count(self) -> int:
        """Number of items."""
        return int(self._db.execute("SELECT items FROM collections WHERE number = ?", (self._record.number,)).get)

    def codes(self) -> Iterator[tuple[Seqs, bytes]]:
        """Sequence numbers and joined code records, in order of insertion; those of deleted items too.

        Raises
        ------
        StorageError
            What is stored is not what was written.
        """
        return segments.read(self._db, self.record)

    def gone(self) -> Seqs:
        """Ascending sequence numbers of the deleted items that `codes` may give."""
        return segments.read_gone(self._db, self.record)

    def scan(self, payloads: bool) -> Iterator[tuple[int, str, bytes | None]]:
        """All items' seq, id and (if wanted) payload, in order of insertion."""
        if self._until < math.inf:
            raise WouldTakeLongError
        sql = f"SELECT seq, id, {'payload' if payloads else 'NULL'} FROM {self._table} ORDER BY seq"
        # No `yield from`: whoever stops early would close the cursor, which later reads need.
        with storage_errors():
            for row in self._db.execute(sql):  # noqa: UP028
                yield row

    def texts(self, seqs: Iterable[int], payloads: bool) -> Iterator[tuple[int, str, bytes | None]]:
        """Seq, id and (if wanted) payload, for those that exist, in any order."""
        sql = f"SELECT seq, id, {'payload' if payloads else 'NULL'} FROM {self._table} WHERE seq IN "
        with storage_errors():
            for some in self._in_time(_pieces(seqs, _TOGETHER)):
                for row in self._db.execute(f"{sql}({','.join('?' * len(some))})", some):  # noqa: UP028 (see `scan`)
                    yield row

    def kept(self, seqs: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Seq and record of kept features, for those that exist."""
        with storage_errors():
            yield from kept.read(self._db, self._record, self._in_time(_pieces(seqs, _TOGETHER)))

    @storage_errors()
    def kept_behind(self, seq: int, limit: int) -> list[tuple[int, bytes]]:
        """Seq and record of kept features, for the next items behind one, in order of insertion."""
        return kept.read_behind(self._db, self._record, seq, limit)

    @storage_errors()
    def last(self) -> int:
        """Seq of the item that was inserted last; 0 if there is none."""
        return int(self._db.execute(f"SELECT coalesce(max(seq), 0) FROM {self._table}").get)

    @storage_errors()
    def item(self, item_id: str) -> ItemRow | None:
        """The item with this id."""
        sql = f"SELECT seq, id, version, payload FROM {self._table} WHERE id = ?"
        return next((ItemRow(*row) for row in self._db.execute(sql, (item_id,))), None)

    def page(self, after: int, limit: int) -> Iterator[ItemRow]:
        """Up to `limit` items with a seq above `after`, in order of insertion."""
        sql = f"SELECT seq, id, version, payload FROM {self._table} WHERE seq > ? ORDER BY seq LIMIT ?"
        with storage_errors():
            yield from (ItemRow(*row) for row in self._db.execute(sql, (after, limit)))

    def rows(self, seqs: Iterable[int]) -> Iterator[ItemRow]:
        """Items with these ascending sequence numbers, in their order."""
        sql = f"SELECT seq, id, version, payload FROM {self._table} WHERE seq IN "
        with storage_errors():
            for some in self._in_time(_pieces(seqs, _TOGETHER)):
                found = self._db.execute(f"{sql}({','.join('?' * len(some))}) ORDER BY seq", some)
                yield from (ItemRow(*row) for row in found)

    @storage_errors()
    def named(self, ids: Sequence[str]) -> Seqs:
        """Ascending sequence numbers of the items with these ids that exist."""
        sql = f"SELECT seq FROM {self._table} WHERE id = ?"
        rows = list(self._db.executemany(sql, ((item_id,) for item_id in self._in_time(ids))))
        return np.unique(np.fromiter((seq for (seq,) in rows), dtype=np.int64))

    @storage_errors()
    def having(self, key: str, values: Sequence[Any]) -> Seqs | None:
        """Ascending sequence numbers of the items that have any of some scalars under a key; None if not indexed."""
        number = self._keys.get(key)
        return (
            None
            if number is None
            else postings.having(self._db, self._record, number, self._in_time(values), self._most)
        )

    @storage_errors()
    def within(self, key: str, bounds: Mapping[str, int | float]) -> tuple[Seqs, bool] | None:
        """See `service.store.interface.Snapshot`."""
        number = self._keys.get(key)
        return None if number is None else postings.within(self._db, self._record, number, bounds, self._most)

    @storage_errors()
    def existing(self, key: str) -> Seqs | None:
        """Ascending sequence numbers of the items that have anything under a key; None if not indexed."""
        number = self._keys.get(key)
        return None if number is None else postings.existing(self._db, self._record, number, self._most)

    def _in_time(self, wanted: Iterable[T]) -> Iterator[T]:
        """The same, until it takes too long."""
        for one in wanted:
            if time.monotonic() > self._until:
                raise WouldTakeLongError
            yield one

    @cached_property
    def _keys(self) -> dict[str, int]:
        return postings.keys_of(self._db, self._record)


def _pieces(seqs: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    rest = iter(seqs)
    while some := tuple(islice(rest, size)):
        yield some
