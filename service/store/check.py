"""Is everything that a data directory holds what was written? For when nobody uses it."""

# ruff: noqa: S608  (the only names put into SQL are those of a collection's tables, made from its number)

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import numpy as np

from ccq_core import CCQ
from ccq_core.errors import CCQError
from service.errors import DatabaseError, UnavailableError
from service.records import Layout
from service.store import aliases, discarded, generations, listed, segments
from service.store.connection import open_writer, storage_errors
from service.store.directory import DirectoryLock
from service.store.interface import CollectionRecord, Seqs
from service.store.reading import DATABASE_NAME
from service.store.snapshot import items_table

_MOST = 20  # faults of one part that are told


@dataclass(frozen=True)
class Part:
    """Something that was looked at: what, how much of it, and what is wrong with it."""

    name: str
    summary: str
    faults: tuple[str, ...]


def check(directory: Path) -> Iterator[Part]:
    """Check every page, model, code and count.

    Raises
    ------
    DirectoryInUseError, DatabaseError, StartError
        There is nothing to check, or a server uses it.
    """
    if not (directory / DATABASE_NAME).exists():
        raise DatabaseError(f"data directory {directory}: no database {DATABASE_NAME} in it")
    lock = DirectoryLock(directory)
    try:
        connection = open_writer(directory / DATABASE_NAME, existing=True)
        try:
            yield from _parts(connection.cursor())
        finally:
            connection.close()
    finally:
        lock.release()


def _parts(db: apsw.Cursor) -> Iterator[Part]:
    yield _part("database", lambda: _database(db))
    layouts: dict[str, Layout] = {}
    for (name,) in list(db.execute("SELECT name FROM models ORDER BY name")):
        yield _part(f"model {name!r}", lambda name=name: _model(db, name, layouts))  # type: ignore[misc]
    for record in listed.every(db):
        yield _part(
            f"collection {record.name!r}",
            lambda record=record: _collection(db, record, layouts),  # type: ignore[misc]
        )


def _part(name: str, look: Callable[[], tuple[str, list[str]]]) -> Part:
    try:
        with storage_errors():
            summary, faults = look()
    except UnavailableError as error:
        cause = error.__cause__
        return Part(name, "", (f"{error}" if cause is None else f"{error}: {cause}",))
    more = [f"and {len(faults) - _MOST} more"] if len(faults) > _MOST else []
    return Part(name, summary, (*faults[:_MOST], *more))


def _database(db: apsw.Cursor) -> tuple[str, list[str]]:
    found = [str(line) for (line,) in db.execute("PRAGMA integrity_check")]
    pages, size = db.execute("PRAGMA page_count").get, db.execute("PRAGMA page_size").get
    return f"{pages * size} bytes", _misplaced(db) if found == ["ok"] else found


def _model(db: apsw.Cursor, name: str, layouts: dict[str, Layout]) -> tuple[str, list[str]]:
    checksum, file = next(db.execute("SELECT checksum, file FROM models WHERE name = ?", (name,)))
    summary = f"{len(file)} bytes"
    if hashlib.sha256(file).hexdigest() != checksum:
        return summary, ["the file is not the one that was stored: its SHA-256 differs"]
    try:
        layouts[name] = Layout.of(CCQ.from_bytes(file))
    except CCQError as error:
        return summary, [str(error)]
    return summary, []


def _collection(db: apsw.Cursor, record: CollectionRecord, layouts: dict[str, Layout]) -> tuple[str, list[str]]:
    held, faults = _codes(db, record, layouts)
    codes = np.setdiff1d(held, segments.read_gone(db, record), assume_unique=True)
    rows = db.execute(f"SELECT seq FROM {items_table(record)} ORDER BY seq")
    items = np.fromiter((seq for (seq,) in rows), dtype=np.int64)
    faults += [f"item number {seq} has no codes" for seq in np.setdiff1d(items, codes, assume_unique=True)]
    faults += [f"codes of item number {seq}, which does not exist" for seq in np.setdiff1d(codes, items, True)]
    counted = db.execute("SELECT items FROM collections WHERE number = ?", (record.number,)).get
    if counted != len(items):
        faults.append(f"{len(items)} items, counted as {counted}")
    summary, staged = f"{len(items)} items", generations.of(db, record)
    if staged is not None:  # noted as gone are items too that were not staged yet, so there is less to compare
        held, more = _codes(db, staged, layouts)
        summary += f", {len(held)} staged for model {staged.model!r}"
        faults += [f"staged for model {staged.model!r}: {fault}" for fault in more]
    return summary, faults


def _codes(db: apsw.Cursor, record: CollectionRecord, layouts: dict[str, Layout]) -> tuple[Seqs, list[str]]:
    """Ascending sequence numbers of the codes of one generation, and what is wrong with it."""
    layout = layouts.get(record.model)
    faults = [] if layout is not None else [f"its model {record.model!r} is missing or damaged"]
    held = [np.empty(0, dtype=np.int64)]
    for seqs, data in segments.read(db, record):
        if layout is not None and len(data) != len(seqs) * layout.size:
            faults.append(f"items number {seqs[0]} to {seqs[-1]}: codes of another length than the model's")
        held.append(seqs)
    return np.concatenate(held), faults


def _misplaced(db: apsw.Cursor) -> list[str]:
    """Tables of codes that are missing, or belong to no generation; and aliases that lead nowhere."""
    known = discarded.names(db)
    for record in listed.every(db):
        for one in (record, generations.of(db, record)):
            if one is not None:
                known |= {segments.codes_table(one), segments.gone_table(one)}
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name GLOB 'codes_*' OR name GLOB 'gone_*')"
    found = {str(name) for (name,) in db.execute(sql)}
    faults = [f"alias {alias!r} leads to no collection, or is one" for alias in aliases.astray(db)]
    faults += [f"table {name} is missing" for name in sorted(known - found)]
    return faults + [f"table {name} belongs to no collection" for name in sorted(found - known)]
