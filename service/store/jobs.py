"""The table of background jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any

import apsw
import orjson

from service.store import replies
from service.store.interface import Once
from service.store.jobrecords import UNFINISHED, JobRecord

# `number`: the order in which they were made.
JOBS_SCHEMA = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    parameters BLOB NOT NULL,
    created TEXT NOT NULL,
    state TEXT NOT NULL,
    started TEXT,
    ended TEXT,
    attempts INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    cancelling INTEGER NOT NULL,
    progress BLOB,
    result BLOB,
    error BLOB
) STRICT;
"""
_COLUMNS = [field.name for field in fields(JobRecord)]
_JSON = ("parameters", "progress", "result", "error")


class JobTable:
    """See `service.store.jobrecords.JobStore`.

    Parameters
    ----------
    write:
        Does some work within a write transaction, durably.
    read:
        Gives read transactions.
    """

    def __init__(
        self,
        write: Callable[[Callable[[apsw.Cursor], None]], object],
        read: Callable[[], AbstractContextManager[apsw.Cursor]],
    ) -> None:
        self._write = write
        self._read = read

    def all(self) -> list[JobRecord]:
        """All jobs, from the oldest to the newest."""
        with self._read() as db:
            rows = db.execute(f"SELECT {', '.join(_COLUMNS)} FROM jobs ORDER BY number")  # noqa: S608 (names of fields)
            return [_record(row) for row in rows]

    def save(self, record: JobRecord, forget: Sequence[str] = (), once: Once | None = None) -> None:
        """Store a job, or what has become of it; and forget the jobs with these ids."""
        values = [_stored(name, getattr(record, name)) for name in _COLUMNS]
        changes = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)
        sql = (
            f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608
            f"ON CONFLICT (id) DO UPDATE SET {changes}"
        )

        def work(db: apsw.Cursor) -> None:
            if once is not None:
                replies.check(db, replies.JOBS, once)
                replies.keep(db, replies.JOBS, once, None)
            db.execute(sql, values)
            _delete(db, forget)

        self._write(work)

    def check(self, once: Once) -> None:
        """Return if nothing was stored that is to be stored once."""
        with self._read() as db:
            replies.check(db, replies.JOBS, once)

    def known(self, key: str) -> bool:
        """Whether a job was stored once under this key."""
        with self._read() as db:
            return replies.known(db, replies.JOBS, key)

    def delete(self, job: str) -> None:
        """Forget the job with this id."""
        self._write(lambda db: _delete(db, [job]))


def _delete(db: apsw.Cursor, ids: Sequence[str]) -> None:
    db.executemany("DELETE FROM jobs WHERE id = ?", ((job,) for job in ids))


def forget_unfinished(connection: apsw.Connection) -> None:
    """Leave only jobs that have ended: for a copy of the database, where nobody is to go on with the others."""
    connection.execute(f"DELETE FROM jobs WHERE state IN ({', '.join('?' * len(UNFINISHED))})", UNFINISHED)  # noqa: S608
    # Whoever asks for one of these again is to get it.
    sql = "DELETE FROM replies WHERE collection = ? AND CAST(reply AS TEXT) ->> '$.id' NOT IN (SELECT id FROM jobs)"
    connection.execute(sql, (replies.JOBS,))


def _stored(name: str, value: Any) -> Any:
    if name in _JSON:
        return None if value is None else orjson.dumps(value)
    return int(value) if isinstance(value, bool) else value


def _record(row: Sequence[Any]) -> JobRecord:
    values = dict(zip(_COLUMNS, row, strict=True))
    for name in _JSON:
        values[name] = None if values[name] is None else orjson.loads(values[name])
    return JobRecord(**{**values, "cancelling": bool(values["cancelling"])})
