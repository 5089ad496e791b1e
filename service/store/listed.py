"""Which collections there are, and what each is at the moment of a transaction."""

from __future__ import annotations

from dataclasses import replace

import apsw

from service.errors import UnknownCollectionError, UnknownModelError
from service.store.interface import CollectionRecord

COLUMNS = "number, name, model, keep, generation"


def every(db: apsw.Cursor) -> list[CollectionRecord]:
    """All collections, by name."""
    return [CollectionRecord(*row) for row in db.execute(f"SELECT {COLUMNS} FROM collections ORDER BY name")]  # noqa: S608 (a constant)


def current(db: apsw.Cursor, record: CollectionRecord) -> CollectionRecord:
    """A collection as it is now, which may have another model since; UnknownCollectionError if it is gone."""
    sql = "SELECT model, generation FROM collections WHERE number = ?"
    for model, generation in list(db.execute(sql, (record.number,))):
        return replace(record, model=model, generation=generation)
    raise UnknownCollectionError(record.name)


def unknown_model(db: apsw.Cursor, name: str) -> UnknownModelError:
    """That there is no model of this name, and what there is."""
    return UnknownModelError(name, [there for (there,) in db.execute("SELECT name FROM models ORDER BY name")])
