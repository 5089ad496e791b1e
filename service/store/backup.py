"""A copy of the whole database, made while it is read and written.

It is made by SQLite's backup from the writer's own connection, step by step between writes: what is written meanwhile
is written to the copy too. So the copy is the database as it is at its end, it never has to begin again, and no read
transaction keeps the write-ahead log from being emptied.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import apsw

from service.store import discarded, generations
from service.store.interface import Copied
from service.store.jobs import forget_unfinished

T = TypeVar("T")

_STEP_PAGES = 512  # 2 MiB, some milliseconds


class BetweenWrites(Protocol):
    """Does something between two writes: what it returns."""

    def __call__(self, work: Callable[[], T], /) -> T: ...


def copy(source: apsw.Connection, between_writes: BetweenWrites, file: Path, check: Callable[[], None]) -> Copied:
    """Copy a database to a new file, which is not synced to disk; see `service.store.interface.Store.copy`."""
    target = apsw.Connection(str(file))
    try:
        # What is half there is thrown away, so nothing is needed to bring it back.
        target.pragma("journal_mode", "off")
        target.pragma("synchronous", "off")
        # The file is to begin as one whose pages have checksums, if they do: then those that are copied get theirs.
        target.reserve_bytes(reserve=between_writes(source.reserve_bytes))
        target.execute("CREATE TABLE first (page)")
        _copy_pages(source, target, between_writes, check)
        target.pragma("journal_mode", "delete")  # of the database, which has the writer's: it is to be one file
        forget_unfinished(target)
        _let_go(target)
        collections = dict(target.execute("SELECT name, items FROM collections ORDER BY name"))
        return Copied(target.pragma("user_version"), collections)
    finally:
        target.close()


def _let_go(target: apsw.Connection) -> None:
    """Leave out codes of models that collections do not have: not yet, or not any more."""
    db = target.cursor()
    with target:
        generations.abandon_all(db)
        some = discarded.clear_all(db)
    if some:
        db.execute("PRAGMA incremental_vacuum").fetchall()


def _copy_pages(
    source: apsw.Connection, target: apsw.Connection, between_writes: BetweenWrites, check: Callable[[], None]
) -> None:
    backup = between_writes(lambda: target.backup("main", source, "main"))
    try:
        while not between_writes(lambda: backup.step(_STEP_PAGES)):
            check()
    finally:
        between_writes(lambda: backup.close(force=True))
