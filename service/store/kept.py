"""Features that collections keep, one record for each item (see `service.kept`)."""

# ruff: noqa: S608  (the only names put into SQL are those of a collection's tables, made from its number)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import apsw

from service.store.interface import CollectionRecord, Seqs


def kept_table(record: CollectionRecord) -> str:
    """Name of the table that holds them. Only collections that keep features have it."""
    return f"kept_{record.number}"


def keeps(record: CollectionRecord) -> bool:
    """Whether a collection keeps features."""
    return record.keep != "none"


def schema(record: CollectionRecord) -> str:
    """SQL that makes the table, if there is to be one."""
    return f"CREATE TABLE {kept_table(record)} (seq INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;" * keeps(record)


def add(db: apsw.Cursor, record: CollectionRecord, rows: Iterable[tuple[int, bytes | None]]) -> None:
    """Keep the features of items, given by sequence number and record."""
    db.executemany(f"INSERT INTO {kept_table(record)} VALUES (?, ?)", rows)


def remove(db: apsw.Cursor, record: CollectionRecord, seqs: Seqs) -> None:
    """Keep the features of items no longer."""
    db.executemany(f"DELETE FROM {kept_table(record)} WHERE seq = ?", ((seq,) for seq in seqs.tolist()))


def read_behind(db: apsw.Cursor, record: CollectionRecord, seq: int, limit: int) -> list[tuple[int, bytes]]:
    """Seq and record of the next items behind one, in order."""
    sql = f"SELECT seq, data FROM {kept_table(record)} WHERE seq > ? ORDER BY seq LIMIT ?"
    return list(db.execute(sql, (seq, limit)))


def read(db: apsw.Cursor, record: CollectionRecord, pieces: Iterable[Sequence[int]]) -> Iterator[tuple[int, bytes]]:
    """Seq and record, for those that exist; `pieces` of seqs, each looked up by one statement."""
    sql = f"SELECT seq, data FROM {kept_table(record)} WHERE seq IN "
    for some in pieces:
        # No `yield from`: whoever stops early would close the cursor.
        for row in db.execute(f"{sql}({','.join('?' * len(some))})", some):  # noqa: UP028
            yield row
