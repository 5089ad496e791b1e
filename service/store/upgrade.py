"""Databases of older versions of this package are brought up to date when they are opened, in one transaction."""

# ruff: noqa: S608  (the only names put into SQL are those of a collection's tables, made from its number)

from __future__ import annotations

from itertools import islice

import apsw
import numpy as np

from service.store import jobs, postings, replies, segments
from service.store.aliases import ALIASES_SCHEMA
from service.store.discarded import DISCARDED_SCHEMA
from service.store.encodernames import ENCODERS_SCHEMA
from service.store.generations import STAGING_SCHEMA
from service.store.interface import CollectionRecord


def upgrade(connection: apsw.Connection) -> None:
    """Take every step from the version that the database has."""
    steps = {
        1: _pack_all_codes,
        2: _keep_replies,
        3: _keep_features,
        4: _keep_jobs,
        5: _count_generations,
        6: _name_encoders,
    }
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(connection.pragma("user_version"), 1 + max(steps)):
            steps[version](connection)
            connection.pragma("user_version", version + 1)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _pack_all_codes(connection: apsw.Connection) -> None:
    """From version 1, which kept the codes of an item in its row."""
    db = connection.cursor()
    db.execute("ALTER TABLE collections ADD COLUMN items INTEGER NOT NULL DEFAULT 0")
    for row in list(db.execute("SELECT number, name, model FROM collections")):
        _pack_codes(connection, CollectionRecord(*row))
    db.execute(postings.INDEXED_KEYS_SCHEMA)


def _keep_replies(connection: apsw.Connection) -> None:
    """From version 2, which kept no replies, and where items of version 1 had no version: 0 now means no item."""
    db = connection.cursor()
    db.execute(replies.REPLIES_SCHEMA)
    for number, version in list(db.execute("SELECT number, version FROM collections")):
        db.execute(f"UPDATE items_{number} SET version = ? WHERE version = 0", (version,))


def _keep_features(connection: apsw.Connection) -> None:
    """From version 3, whose collections kept no features."""
    connection.execute("ALTER TABLE collections ADD COLUMN keep TEXT NOT NULL DEFAULT 'none'")


def _keep_jobs(connection: apsw.Connection) -> None:
    """From version 4, which knew no jobs."""
    connection.execute(jobs.JOBS_SCHEMA)


def _count_generations(connection: apsw.Connection) -> None:
    """From version 5, whose collections kept their models, and had no aliases."""
    connection.execute("ALTER TABLE collections ADD COLUMN generation INTEGER NOT NULL DEFAULT 0")
    connection.execute(STAGING_SCHEMA + DISCARDED_SCHEMA + ALIASES_SCHEMA)


def _name_encoders(connection: apsw.Connection) -> None:
    """From version 6, whose collections had no encoders."""
    connection.execute(ENCODERS_SCHEMA)


def _pack_codes(connection: apsw.Connection, record: CollectionRecord) -> None:
    db, reading = connection.cursor(), connection.cursor()
    table = f"items_{record.number}"
    db.execute(segments.schema(record) + postings.schema(record))
    rows = reading.execute(f"SELECT seq, record FROM {table} ORDER BY seq")
    items = 0
    while part := list(islice(rows, segments.FULL_ROWS)):
        seqs, records = zip(*part, strict=True)
        segments.insert(db, record, np.array(seqs, dtype=np.int64), b"".join(records))
        items += len(part)
    db.execute("UPDATE collections SET items = ? WHERE number = ?", (items, record.number))
    db.execute(f"ALTER TABLE {table} ADD COLUMN version INTEGER NOT NULL DEFAULT 0")
    db.execute(f"ALTER TABLE {table} DROP COLUMN record")
