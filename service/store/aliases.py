"""The table of aliases: other names of collections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import apsw

from service.errors import AliasConflictError, UnknownAliasError, UnknownCollectionError
from service.store import listed
from service.store.interface import CollectionRecord

T = TypeVar("T")

ALIASES_SCHEMA = "CREATE TABLE aliases (name TEXT PRIMARY KEY, collection INTEGER NOT NULL) STRICT;"


class _Write(Protocol):
    """Does some work within a write transaction: what it returns, durably."""

    def __call__(self, work: Callable[[apsw.Cursor], T], /) -> T: ...


class AliasTable:
    """See `service.store.interface.AliasStore`; the parameters are ways to write and to read."""

    def __init__(self, write: _Write, read: Callable[[], AbstractContextManager[apsw.Cursor]]) -> None:
        self._write = write
        self._read = read

    def all(self) -> dict[str, str]:
        """Aliases, and the names of their collections; by alias."""
        with self._read() as db:
            sql = "SELECT a.name, c.name FROM aliases AS a JOIN collections AS c ON number = collection ORDER BY a.name"
            return {str(alias): str(name) for alias, name in db.execute(sql)}

    def put(self, alias: str, collection: str) -> bool:
        """Let an alias lead to a collection; whether it is new."""

        def work(db: apsw.Cursor) -> bool:
            numbers = {record.name: record.number for record in listed.every(db)}
            if alias in numbers:
                raise AliasConflictError(f"expected another name for the alias than {alias!r}, which is a collection")
            refuse_alias(db, collection, "expected a collection for the alias to lead to")
            if collection not in numbers:
                raise UnknownCollectionError(collection, numbers)
            new = not db.execute("SELECT count(*) FROM aliases WHERE name = ?", (alias,)).get
            db.execute("REPLACE INTO aliases (name, collection) VALUES (?, ?)", (alias, numbers[collection]))
            return new

        return self._write(work)

    def delete(self, alias: str) -> None:
        """Delete an alias."""

        def work(db: apsw.Cursor) -> None:
            if not list(db.execute("DELETE FROM aliases WHERE name = ? RETURNING 1", (alias,))):
                there = [name for (name,) in db.execute("SELECT name FROM aliases ORDER BY name")]
                raise UnknownAliasError(alias, there)

        self._write(work)


def refuse_alias(db: apsw.Cursor, name: str, expected: str) -> None:
    """AliasConflictError if a name is that of an alias, where a collection is expected."""
    sql = "SELECT collections.name FROM aliases JOIN collections ON number = collection WHERE aliases.name = ?"
    for (collection,) in list(db.execute(sql, (name,))):
        raise AliasConflictError(f"{expected}, got {name!r}, an alias of collection {collection!r}")


def refuse_aliased(db: apsw.Cursor, record: CollectionRecord) -> None:
    """AliasConflictError if an alias leads to a collection."""
    rows = list(db.execute("SELECT name FROM aliases WHERE collection = ? ORDER BY name", (record.number,)))
    if rows:
        aliases = ", ".join(repr(alias) for (alias,) in rows)
        raise AliasConflictError(f"collection {record.name!r} cannot be deleted while an alias leads to it: {aliases}")


def astray(db: apsw.Cursor) -> list[str]:
    """Aliases that lead nowhere, or have the name of a collection; of which there should be none."""
    sql = (
        "SELECT name FROM aliases WHERE collection NOT IN (SELECT number FROM collections) "
        "OR name IN (SELECT name FROM collections) ORDER BY name"
    )
    return [str(alias) for (alias,) in db.execute(sql)]
