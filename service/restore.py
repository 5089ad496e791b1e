"""A data directory from a snapshot."""

from __future__ import annotations

from pathlib import Path

from service import archive
from service.errors import SnapshotFileError
from service.store.connection import log_bytes, sync_directory
from service.store.directory import DirectoryLock
from service.store.reading import DATABASE_NAME


def restore(snapshot: Path, directory: Path) -> archive.Manifest:
    """Put the database of a snapshot into a data directory that has none; all of it, or nothing.

    Raises
    ------
    SnapshotFileError
        The directory has a database, or the snapshot cannot be used: damaged, cut short, or of a newer version.
    DirectoryInUseError, StartError
        A server uses the directory, or it cannot be written to.
    OSError
        The snapshot cannot be read, or the directory is full.
    """
    database = directory / DATABASE_NAME
    lock = DirectoryLock(directory)
    try:
        if log_bytes(database) or (database.exists() and database.stat().st_size):
            raise SnapshotFileError(f"data directory {directory} has a database already: choose an empty one")
        restored = directory / (DATABASE_NAME + ".restored")
        try:
            manifest = archive.extract(snapshot, restored)
            restored.replace(database)
        finally:
            restored.unlink(missing_ok=True)
        sync_directory(directory)
    finally:
        lock.release()
    return manifest
