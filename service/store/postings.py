"""Which items have which value under a declared payload key: so that a filter need not read every payload.

One table per collection, in order of key, value and sequence number. What becomes of a payload's values in it:

- numbers and strings are themselves: SQLite compares numbers as numbers, and orders them before strings;
- `true`, `false` and `null` are blobs of one letter, which equal nothing else;
- integers above what SQLite holds are the blob `i` and their digits, strings of more than 128 bytes the blob `s` and a
  hash;
- a key that leads to no scalar, only to objects or empty arrays, has the blob `x`: it exists.
"""

# ruff: noqa: S608  (the only names put into SQL are those of a collection's tables, made from its number)

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apsw
import numpy as np

from service.errors import StorageError, WouldTakeLongError
from service.payloads import load_payload
from service.store.interface import CollectionRecord, Seqs
from service.values import scalars_at, values_at

Text = tuple[int, str, bytes | None]
"""An item's seq, id and payload."""

INDEXED_KEYS_SCHEMA = """
CREATE TABLE indexed_keys (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL,
    path TEXT NOT NULL,
    UNIQUE (collection, path)
) STRICT;
"""
_LONGEST = 128
_MOST = (1 << 63) - 1
_EXISTS = b"x"
_COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def postings_table(record: CollectionRecord) -> str:
    """Name of the table."""
    return f"postings_{record.number}"


def schema(record: CollectionRecord) -> str:
    """SQL that makes it."""
    return (
        f"CREATE TABLE {postings_table(record)} (key INTEGER, value ANY, seq INTEGER, PRIMARY KEY (key, value, seq)) "
        "STRICT, WITHOUT ROWID;"
    )


def keys_of(db: apsw.Cursor, record: CollectionRecord) -> dict[str, int]:
    """The indexed keys of a collection: path and number, in order of the paths."""
    sql = "SELECT path, number FROM indexed_keys WHERE collection = ? ORDER BY path"
    return dict(db.execute(sql, (record.number,)))


def add(db: apsw.Cursor, record: CollectionRecord, keys: Mapping[str, int], items: Iterable[Text]) -> None:
    """Note what items have under keys, given by path and number."""
    db.executemany(f"INSERT INTO {postings_table(record)} VALUES (?, ?, ?)", _postings(keys, items))


def remove(db: apsw.Cursor, record: CollectionRecord, keys: Mapping[str, int], items: Iterable[Text]) -> None:
    """Forget what items had under keys."""
    table = postings_table(record)
    for item in items:
        try:
            found = list(_postings(keys, [item]))
        except StorageError:  # a damaged payload does not tell, and must not keep its item from being replaced
            db.execute(f"DELETE FROM {table} WHERE seq = ?", item[:1])
        else:
            db.executemany(f"DELETE FROM {table} WHERE key = ? AND value = ? AND seq = ?", found)


def drop(db: apsw.Cursor, record: CollectionRecord, key: int) -> None:
    """Forget all about a key."""
    db.execute(f"DELETE FROM {postings_table(record)} WHERE key = ?", (key,))


def having(db: apsw.Cursor, record: CollectionRecord, key: int, values: Iterable[Any], most: int = -1) -> Seqs:
    """Ascending sequence numbers of the items that have any of some scalars under a key."""
    return _union(_find(db, record, "key = ? AND value = ?", (key, _stored(value)), most) for value in values)


def within(
    db: apsw.Cursor, record: CollectionRecord, key: int, bounds: Mapping[str, int | float], most: int = -1
) -> tuple[Seqs, bool]:
    """Ascending sequence numbers of the items that have a number in a range under a key.

    Parameters
    ----------
    bounds:
        Any of `gt`, `gte`, `lt` and `lte`.

    Returns
    -------
    The numbers; and whether no others are among them, as may be where integers are beyond what SQLite holds.
    """
    sql = "key = ? AND value < ''"  # strings and blobs come behind all numbers
    values: list[int | float] = [key]
    exact = huge = True
    for name, bound in bounds.items():
        comparison = _COMPARISONS[name]
        if isinstance(bound, int) and bound > _MOST:
            comparison, bound, exact = comparison[0] + "=", float(bound), False
        huge &= comparison[0] == ">" or bound > _MOST
        sql += f" AND value {comparison} ?"
        values.append(bound)
    parts = [_find(db, record, sql, values, most)]
    if huge:
        parts.append(_find(db, record, "key = ? AND value >= ? AND value < ?", (key, b"i", b"j"), most))
        exact &= parts[1].size == 0
    return _union(parts), exact


def existing(db: apsw.Cursor, record: CollectionRecord, key: int, most: int = -1) -> Seqs:
    """Ascending sequence numbers of the items that have anything under a key."""
    return _union([_find(db, record, "key = ?", (key,), most)])


def _postings(keys: Mapping[str, int], items: Iterable[Text]) -> Iterator[tuple[int, Any, int]]:
    paths = [(number, path.split(".")) for path, number in keys.items()]
    for seq, item_id, data in items:
        if data is None:
            continue
        payload = load_payload(item_id, data)
        for number, steps in paths:
            values = {_stored(value) for value in scalars_at(payload, steps).values()}
            if not values and values_at(payload, steps):
                values = {_EXISTS}
            for value in values:
                yield number, value, seq


def _stored(value: Any) -> Any:
    match value:
        case None:
            return b"n"
        case bool():
            return b"t" if value else b"f"
        case int() if value > _MOST:
            return b"i%d" % value
        case float() if _MOST < value < 1 << 64:  # so far apart that each is an integer, and equal to one above
            return b"i%d" % int(value)
        case str() if len(data := value.encode()) > _LONGEST:
            return b"s" + hashlib.sha256(data).digest()
    return value


def _find(db: apsw.Cursor, record: CollectionRecord, where: str, values: Iterable[Any], most: int) -> Seqs:
    """Sequence numbers; WouldTakeLongError if there are more than `most`, unless that is negative."""
    # One text of all numbers takes a fraction of the time of as many rows.
    some = f"SELECT seq FROM {postings_table(record)} WHERE {where} LIMIT {most + 1 if most >= 0 else -1}"
    text = db.execute(f"SELECT group_concat(seq) FROM ({some})", tuple(values)).get
    found = np.fromstring(text or "", np.int64, sep=",")
    if 0 <= most < len(found):
        raise WouldTakeLongError
    return found


def _union(parts: Iterable[Seqs]) -> Seqs:
    several = [part for part in parts if part.size]
    if len(several) == 1 and (np.diff(several[0]) > 0).all():
        return several[0]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *several]))
