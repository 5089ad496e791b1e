"""One collection as a read transaction sees it."""

# ruff: noqa: S608  (the only name put into SQL is that of a collection's table, made from its number)

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw

from service.errors import UnknownCollectionError
from service.store import segments
from service.store.interface import CollectionRecord, ItemRow, Seqs


def items_table(record: CollectionRecord) -> str:
    """Name of the table that holds a collection's items."""
    return f"items_{record.number}"


class SQLiteSnapshot:
    """A collection at one moment (see `service.store.interface.Snapshot`).

    Parameters
    ----------
    db:
        Cursor of a read transaction; its first read, which fixes the moment, is done here.
    record:
        The collection; UnknownCollectionError if it is gone.
    """

    def __init__(self, db: apsw.Cursor, record: CollectionRecord) -> None:
        version = db.execute("SELECT version FROM collections WHERE number = ?", (record.number,)).get
        if not isinstance(version, int):
            raise UnknownCollectionError(record.name)
        self.version = version
        self._db = db
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
        return segments.read(self._db, self._record)

    def gone(self) -> Seqs:
        """Ascending sequence numbers of the deleted items that `codes` may give."""
        return segments.read_gone(self._db, self._record)

    def scan(self, payloads: bool) -> Iterator[tuple[int, str, bytes | None]]:
        """All items' seq, id and (if wanted) payload, in order of insertion."""
        sql = f"SELECT seq, id, {'payload' if payloads else 'NULL'} FROM {self._table} ORDER BY seq"
        # No `yield from`: whoever stops early would close the cursor, which later reads need.
        for row in self._db.execute(sql):  # noqa: UP028
            yield row

    def texts(self, seqs: Iterable[int], payloads: bool) -> Iterator[tuple[int, str, bytes | None]]:
        """Seq, id and (if wanted) payload, for those that exist."""
        sql = f"SELECT seq, id, {'payload' if payloads else 'NULL'} FROM {self._table} WHERE seq = ?"
        for seq in seqs:
            for row in self._db.execute(sql, (seq,)):  # noqa: UP028 (see `scan`)
                yield row

    def item(self, item_id: str) -> ItemRow | None:
        """The item with this id."""
        sql = f"SELECT seq, id, version, payload FROM {self._table} WHERE id = ?"
        return next((ItemRow(*row) for row in self._db.execute(sql, (item_id,))), None)

    def page(self, after: int, limit: int) -> Iterator[ItemRow]:
        """Up to `limit` items with a seq above `after`, in order of insertion."""
        sql = f"SELECT seq, id, version, payload FROM {self._table} WHERE seq > ? ORDER BY seq LIMIT ?"
        yield from (ItemRow(*row) for row in self._db.execute(sql, (after, limit)))
