"""Replies to writes that are to be done once: kept for a day, in the transaction of their write.

So a client that did not get a reply, whatever was the cause, can ask again without having the write done twice.
"""

from __future__ import annotations

import time

import apsw

from service.errors import Fault, KeyReusedError
from service.places import shorten
from service.store.interface import Change, CollectionRecord, DoneBefore, Once

KEPT_SECONDS = 24 * 60 * 60
_STEP_ROWS = 1000
JOBS = 0
"""Stands for the number of a collection where jobs are queued, which belong to none."""

# `time`: when the write was done, in seconds since 1970.
REPLIES_SCHEMA = """
CREATE TABLE replies (
    collection INTEGER NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    time INTEGER NOT NULL,
    reply BLOB NOT NULL,
    PRIMARY KEY (collection, key)
) STRICT;
CREATE INDEX replies_by_time ON replies (time);
"""


def check(db: apsw.Cursor, number: int, once: Once) -> None:
    """Return if a write to the collection of this number was not done yet.

    Raises
    ------
    DoneBefore
        It was.
    KeyReusedError
        Its key was that of another one.
    """
    sql = "SELECT digest, reply FROM replies WHERE collection = ? AND key = ? AND time > ?"
    for digest, reply in db.execute(sql, (number, once.key, _oldest())):
        if digest == once.digest:
            raise DoneBefore(reply)
        reason = f"expected the request that had the key {shorten(once.key)} before, got another one"
        raise KeyReusedError(reason, [Fault("Idempotency-Key", reason)])


def keep(db: apsw.Cursor, number: int, once: Once, change: Change | None) -> None:
    """Keep the reply to a write that was done."""
    row = (number, once.key, once.digest, int(time.time()), once.reply(change))
    db.execute("INSERT OR REPLACE INTO replies (collection, key, digest, time, reply) VALUES (?, ?, ?, ?, ?)", row)


def known(db: apsw.Cursor, number: int, key: str) -> bool:
    """Whether some write to the collection of this number had the key."""
    sql = "SELECT 1 FROM replies WHERE collection = ? AND key = ? AND time > ?"
    return db.execute(sql, (number, key, _oldest())).get is not None


def drop(db: apsw.Cursor, record: CollectionRecord) -> None:
    """Forget those of a collection."""
    db.execute("DELETE FROM replies WHERE collection = ?", (record.number,))


def forget_old(db: apsw.Cursor) -> bool:
    """Forget some of those that were kept for long enough; whether there may be more."""
    sql = (
        "DELETE FROM replies WHERE rowid IN (SELECT rowid FROM replies WHERE time <= ? ORDER BY time LIMIT ?) "
        "RETURNING 1"
    )
    return len(db.execute(sql, (_oldest(), _STEP_ROWS)).fetchall()) == _STEP_ROWS


def _oldest() -> int:
    return int(time.time()) - KEPT_SECONDS
