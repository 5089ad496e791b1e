"""What is not needed any more is removed bit by bit, between writes."""

from __future__ import annotations

import apsw

from service.store import discarded, listed, replies, segments
from service.store.interface import CollectionRecord

_FREE_PAGES = 256  # that may stay for what comes next
_STEP_PAGES = 2048
_INCREMENTAL = 2


class Tidier:
    """Takes one short step each time that it is called, within a write transaction: whether there is more to do.

    It removes codes of former models, rewrites segments of codes much of which are of deleted items, one collection
    after the other, forgets old replies, and gives free pages back to the file system.
    """

    def __init__(self) -> None:
        self._at = (0, -1)  # number of a collection, and the segment behind which to go on

    def __call__(self, db: apsw.Cursor) -> bool:
        clearing = discarded.clear_some(db)
        rewriting, forgetting = self._rewrite(db), replies.forget_old(db)
        return self._give_back(db) or rewriting or forgetting or clearing

    def _rewrite(self, db: apsw.Cursor) -> bool:
        number, after = self._at
        sql = f"SELECT {listed.COLUMNS} FROM collections WHERE number >= ? ORDER BY number LIMIT 1"  # noqa: S608 (a constant)
        for record in (CollectionRecord(*row) for row in list(db.execute(sql, (number,)))):
            if record.number != number:
                after = -1
            at = segments.rewrite_some(db, record, after)
            self._at = (record.number + 1, -1) if at is None else (record.number, at)
            return True
        self._at = (0, -1)
        return False

    def _give_back(self, db: apsw.Cursor) -> bool:
        free = int(db.execute("PRAGMA freelist_count").get)
        if free <= _FREE_PAGES or db.execute("PRAGMA auto_vacuum").get != _INCREMENTAL:
            return False
        db.execute(f"PRAGMA incremental_vacuum({min(_STEP_PAGES, free - _FREE_PAGES)})").fetchall()
        return free - _STEP_PAGES > _FREE_PAGES
