"""Tables of codes that nobody uses any more: emptied bit by bit, between writes, and then dropped.

To drop a table of millions of items at once would keep every write waiting.
"""

# ruff: noqa: S608  (the only names put into SQL are those of tables that were made from numbers)

from __future__ import annotations

import apsw

from service.store import segments
from service.store.interface import CollectionRecord

DISCARDED_SCHEMA = "CREATE TABLE discarded (name TEXT PRIMARY KEY, step INTEGER NOT NULL) STRICT;"
_SEGMENTS = 4  # removed at one time: some megabytes
_NOTES = 20_000


def discard(db: apsw.Cursor, record: CollectionRecord) -> None:
    """Let go of the codes of one generation of a collection."""
    tables = ((segments.codes_table(record), _SEGMENTS), (segments.gone_table(record), _NOTES))
    db.executemany("INSERT INTO discarded (name, step) VALUES (?, ?)", tables)


def clear_some(db: apsw.Cursor) -> bool:
    """Remove a part of what was discarded; whether there is more."""
    for name, step in list(db.execute("SELECT name, step FROM discarded LIMIT 1")):
        db.execute(f"DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} LIMIT ?)", (step,))
        if not db.execute(f"SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT 1)").get:
            _drop(db, name)
    return bool(db.execute("SELECT count(*) FROM discarded").get)


def clear_all(db: apsw.Cursor) -> bool:
    """Remove all that was discarded at once, in a database that nobody else uses; whether there was anything."""
    names = [name for (name,) in db.execute("SELECT name FROM discarded")]
    for name in names:
        _drop(db, name)
    return bool(names)


def names(db: apsw.Cursor) -> set[str]:
    """Names of the tables."""
    return {name for (name,) in db.execute("SELECT name FROM discarded")}


def _drop(db: apsw.Cursor, name: str) -> None:
    db.execute(f"DROP TABLE {name}")
    db.execute("DELETE FROM discarded WHERE name = ?", (name,))
