"""Replies about snapshots."""

from __future__ import annotations

from pydantic import Field

from service.schemas.base import Schema


class SnapshotInfo(Schema):
    """A snapshot: a file from which `ccq restore` makes a data directory."""

    name: str
    size: int = Field(description="Length of the file in bytes.")
    checksum: str = Field(description="SHA-256 of the database in it, in hex. As its ETag.")
    created: str = Field(description="Of which moment it is (ISO 8601, UTC).")
    collections: dict[str, int] = Field(description="Number of items in it of each collection.")


class SnapshotList(Schema):
    """All snapshots, the oldest first."""

    snapshots: list[SnapshotInfo]
