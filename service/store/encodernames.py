"""Which encoder a collection has for which modality; by name, as the server knows them."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from service.store.interface import CollectionRecord

ENCODERS_SCHEMA = """
CREATE TABLE encoders (
    collection INTEGER NOT NULL,
    modality TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (collection, modality)
) STRICT;
"""


def of(db: apsw.Cursor, record: CollectionRecord) -> dict[str, str]:
    """Names of encoders by modality."""
    sql = "SELECT modality, name FROM encoders WHERE collection = ? ORDER BY modality"
    return {str(modality): str(name) for modality, name in db.execute(sql, (record.number,))}


def put(db: apsw.Cursor, record: CollectionRecord, names: Mapping[str, str]) -> None:
    """Let a collection have exactly these."""
    drop(db, record)
    rows = ((record.number, modality, name) for modality, name in names.items())
    db.executemany("INSERT INTO encoders (collection, modality, name) VALUES (?, ?, ?)", rows)


def drop(db: apsw.Cursor, record: CollectionRecord) -> None:
    """Let a collection have none."""
    db.execute("DELETE FROM encoders WHERE collection = ?", (record.number,))
