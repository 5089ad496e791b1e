"""Code records in the database: packed, so that millions are read in a moment.

A segment holds the records of consecutive items in one row. Each write appends a small one; where many small ones have
come together at the end they are joined, so that there is one for every some ten thousand items. A record stays in its
segment when its item is deleted: the sequence number is noted as gone, and when many are, segments are rewritten
without them, one at a time.
"""

# ruff: noqa: S608  (the only names put into SQL are those of a collection's tables, made from its number)

from __future__ import annotations

import zlib
from collections.abc import Iterator

import apsw
import numpy as np

from service.errors import StorageError
from service.store.interface import CollectionRecord, Seqs

FULL_ROWS = 1 << 16  # a segment that has as many is not joined any more
_FEW = 16  # segments of a kind at the end that are joined
_GONE_SHARE = 4  # a segment is rewritten if one in so many of its records is of no use

# `offsets`: sequence numbers less `first`, uint32, little-endian; NULL where they are consecutive. `data` stands last,
# so that reading the rest never has to pass it.
SCHEMA = """
CREATE TABLE {codes} (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    offsets BLOB,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE {gone} (seq INTEGER PRIMARY KEY) STRICT;
"""


def codes_table(record: CollectionRecord) -> str:
    """Name of the table that holds a collection's segments, of the generation that it has in the record."""
    return f"codes_{_suffix(record)}"


def gone_table(record: CollectionRecord) -> str:
    """Name of the table that notes which of their records are of deleted items."""
    return f"gone_{_suffix(record)}"


def _suffix(record: CollectionRecord) -> str:
    return f"{record.number}_{record.generation}" if record.generation else f"{record.number}"


def schema(record: CollectionRecord) -> str:
    """SQL that makes both."""
    return SCHEMA.format(codes=codes_table(record), gone=gone_table(record))


def insert(db: apsw.Cursor, record: CollectionRecord, seqs: Seqs, data: bytes) -> None:
    """Add a segment: the joined records of items with these ascending sequence numbers, which no other has."""
    first, last, rows = int(seqs[0]), int(seqs[-1]), len(seqs)
    consecutive = last - first == rows - 1
    offsets = None if consecutive else (seqs - first).astype("<u4").tobytes()
    db.execute(
        f"INSERT INTO {codes_table(record)} (first, last, rows, checksum, offsets, data) VALUES (?, ?, ?, ?, ?, ?)",
        (first, last, rows, _checksum(first, last, rows, offsets, data), offsets, data),
    )


def append(db: apsw.Cursor, record: CollectionRecord, first: int, rows: int, data: bytes) -> None:
    """Add the records of items with consecutive sequence numbers from `first` on, behind all others."""
    add(db, record, np.arange(first, first + rows, dtype=np.int64), data)


def add(db: apsw.Cursor, record: CollectionRecord, seqs: Seqs, data: bytes) -> None:
    """Add the records of items with these ascending sequence numbers, behind all others."""
    insert(db, record, seqs, data)
    _join(db, record)


def bury(db: apsw.Cursor, record: CollectionRecord, seqs: Seqs) -> None:
    """Note that items are gone."""
    db.executemany(f"INSERT INTO {gone_table(record)} VALUES (?)", ((seq,) for seq in seqs.tolist()))


def read(db: apsw.Cursor, record: CollectionRecord) -> Iterator[tuple[Seqs, bytes]]:
    """Sequence numbers and joined records of each segment, those that are gone too.

    Raises
    ------
    StorageError
        A segment's checksum is not that of its contents.
    """
    sql = f"SELECT first, last, rows, checksum, offsets, data FROM {codes_table(record)} ORDER BY first"
    for row in db.execute(sql):
        yield _checked(record, *row)


def read_one(db: apsw.Cursor, record: CollectionRecord, least: int) -> tuple[Seqs, bytes] | None:
    """The same of the first segment that begins with this number or a higher one; None if there is none."""
    sql = (
        f"SELECT first, last, rows, checksum, offsets, data FROM {codes_table(record)} WHERE first >= ? ORDER BY first"
    )
    row = db.execute(sql + " LIMIT 1", (least,)).fetchone()
    return None if row is None else _checked(record, *row)


def read_gone(db: apsw.Cursor, record: CollectionRecord) -> Seqs:
    """Ascending sequence numbers of records that are of no use."""
    rows = db.execute(f"SELECT seq FROM {gone_table(record)} ORDER BY seq")
    return np.fromiter((seq for (seq,) in rows), dtype=np.int64)


def counts(db: apsw.Cursor, record: CollectionRecord) -> tuple[int, int]:
    """How many records there are, and how many of them are of no use."""
    rows = db.execute(f"SELECT coalesce(sum(rows), 0) FROM {codes_table(record)}").get
    return rows, db.execute(f"SELECT count(*) FROM {gone_table(record)}").get


def rewrite_some(db: apsw.Cursor, record: CollectionRecord, after: int) -> int | None:
    """Look through a few segments that begin above `after`, and rewrite the first much of which is of no use.

    Returns where to go on; None at the end.
    """
    codes, gone = codes_table(record), gone_table(record)
    sql = f"SELECT first, last, rows FROM {codes} WHERE first > ? ORDER BY first LIMIT {_FEW}"
    some = list(db.execute(sql, (after,)))
    for first, last, rows in some:
        useless = [seq for (seq,) in db.execute(f"SELECT seq FROM {gone} WHERE seq BETWEEN ? AND ?", (first, last))]
        if len(useless) * _GONE_SHARE >= rows:
            _rewrite(db, record, first, np.array(useless, dtype=np.int64))
            return int(first)
    return int(some[-1][0]) if len(some) == _FEW else None


def _rewrite(db: apsw.Cursor, record: CollectionRecord, first: int, useless: Seqs) -> None:
    codes, gone = codes_table(record), gone_table(record)
    sql = f"SELECT first, last, rows, checksum, offsets, data FROM {codes} WHERE first = ?"
    seqs, data = _checked(record, *next(db.execute(sql, (first,))))
    table = np.frombuffer(data, dtype=np.uint8).reshape(len(seqs), -1)
    useful = ~np.isin(seqs, useless)
    db.execute(f"DELETE FROM {codes} WHERE first = ?", (first,))
    db.execute(f"DELETE FROM {gone} WHERE seq BETWEEN ? AND ?", (first, int(seqs[-1])))
    if useful.any():
        insert(db, record, seqs[useful], table[useful].tobytes())


def _join(db: apsw.Cursor, record: CollectionRecord) -> None:
    """Join small segments at the end where there are many of a kind."""
    codes = codes_table(record)
    tail: list[tuple[int, int]] = []
    for first, rows in db.execute(f"SELECT first, rows FROM {codes} ORDER BY first DESC LIMIT {4 * _FEW}"):
        if rows >= FULL_ROWS:
            break
        tail.append((first, rows))
    kind = 1
    while kind < FULL_ROWS:
        kind = min(kind * _FEW, FULL_ROWS)  # segments of fewer records than this
        run = next((i for i, (_, rows) in enumerate(tail) if rows >= kind), len(tail))
        if run >= _FEW or sum(rows for _, rows in tail[:run]) >= FULL_ROWS:
            _join_from(db, record, tail[run - 1][0])
            return


def _join_from(db: apsw.Cursor, record: CollectionRecord, first: int) -> None:
    codes = codes_table(record)
    sql = f"SELECT first, last, rows, checksum, offsets, data FROM {codes} WHERE first >= ? ORDER BY first"
    parts = [_checked(record, *row) for row in db.execute(sql, (first,))]
    db.execute(f"DELETE FROM {codes} WHERE first >= ?", (first,))
    insert(db, record, np.concatenate([seqs for seqs, _ in parts]), b"".join(data for _, data in parts))


def _checked(
    record: CollectionRecord, first: int, last: int, rows: int, checksum: int, offsets: bytes | None, data: bytes
) -> tuple[Seqs, bytes]:
    if checksum != _checksum(first, last, rows, offsets, data):
        raise StorageError(
            f"collection {record.name!r}: the codes of items number {first} to {last} are damaged, their checksum is "
            "not that of their contents: restore a snapshot, or index these items again"
        )
    if offsets is None:
        return np.arange(first, first + rows, dtype=np.int64), data
    return first + np.frombuffer(offsets, dtype="<u4").astype(np.int64), data


def _checksum(first: int, last: int, rows: int, offsets: bytes | None, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(offsets or b"", zlib.crc32(b"%d %d %d" % (first, last, rows))))
