"""Generations of codes: those that a collection has, and those of another model that are being made for it.

Ids, payloads, kept features and postings do not depend on the model; codes alone do. Those of each model that a
collection has, or is about to have, are in tables of their own, a generation. A new one is staged beside the old, takes
its place in one write, or is abandoned; what is left over is discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import apsw

from service.errors import ReencodingError
from service.store import discarded, listed, segments
from service.store.interface import CollectionRecord, Seqs

# A generation is never used twice, in no collection.
STAGING_SCHEMA = """
CREATE TABLE staging (
    generation INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL UNIQUE,
    model TEXT NOT NULL
) STRICT;
"""


def begin(db: apsw.Cursor, record: CollectionRecord, model: str, live: Collection[int]) -> CollectionRecord:
    """Make room for codes of another model; the collection as it is to be.

    Parameters
    ----------
    live:
        Generations that somebody is at work on. Another one that is staged for the collection was left behind.

    Raises
    ------
    UnknownModelError
    ReencodingError
        Some are being gathered already.
    """
    if not db.execute("SELECT count(*) FROM models WHERE name = ?", (model,)).get:
        raise listed.unknown_model(db, model)
    known = of(db, record)
    if known is not None and known.generation in live:
        raise ReencodingError(f"collection {record.name!r} is being encoded with model {known.model!r} already")
    abandon_of(db, record)
    sql = "INSERT INTO staging (collection, model) VALUES (?, ?) RETURNING generation"
    staged = replace(record, model=model, generation=db.execute(sql, (record.number, model)).get)
    db.execute(segments.schema(staged))
    return staged


def of(db: apsw.Cursor, record: CollectionRecord) -> CollectionRecord | None:
    """A collection as it is to be; None if nothing is staged for it."""
    sql = "SELECT model, generation FROM staging WHERE collection = ?"
    for model, generation in list(db.execute(sql, (record.number,))):
        return replace(record, model=model, generation=generation)
    return None


def bury(db: apsw.Cursor, record: CollectionRecord, seqs: Seqs) -> None:
    """Note that items of a collection are gone, in all its generations."""
    staged = of(db, record) if len(seqs) else None
    for generation in [record] if staged is None else [record, staged]:
        segments.bury(db, generation, seqs)


def users(db: apsw.Cursor, model: str) -> Sequence[str]:
    """Names of the collections for which codes of a model are staged."""
    sql = "SELECT name FROM staging JOIN collections ON number = collection WHERE staging.model = ? ORDER BY name"
    return [name for (name,) in db.execute(sql, (model,))]


def abandon(db: apsw.Cursor, staged: CollectionRecord) -> None:
    """Let go of what is staged, if it is still."""
    _abandon(db, "generation = ?", staged.generation)


def abandon_of(db: apsw.Cursor, record: CollectionRecord) -> None:
    """Let go of what is staged for a collection, if anything is."""
    _abandon(db, "collection = ?", record.number)


def abandon_all(db: apsw.Cursor) -> None:
    """Let go of all that is staged: of whatever was not finished when the server ended."""
    _abandon(db, "?", 1)


def _abandon(db: apsw.Cursor, where: str, value: int) -> None:
    sql = f"DELETE FROM staging WHERE {where} RETURNING collection, model, generation"  # noqa: S608 (a constant)
    for number, model, generation in list(db.execute(sql, (value,))):
        discarded.discard(db, CollectionRecord(number, "", model, generation=generation))


def adopt(db: apsw.Cursor, old: CollectionRecord, new: CollectionRecord) -> int:
    """Put what is staged in the place of what a collection has; the collection's version from now on."""
    discarded.discard(db, old)
    db.execute("DELETE FROM staging WHERE generation = ?", (new.generation,))
    sql = "UPDATE collections SET model = ?, generation = ?, version = version + 1 WHERE number = ? RETURNING version"
    return int(db.execute(sql, (new.model, new.generation, new.number)).get)
