"""Snapshots: files from which a data directory can be made again, made while the server serves.

They are in the directory `snapshots` of the data directory. One is made at a time, in a directory of its own beside
them; only what is whole and on disk gets its name. (What the store calls a snapshot is another thing: a moment to read
from.)
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from contextvars import Context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from service import archive, metrics
from service.disk import check_room, disk_errors
from service.errors import (
    SnapshotFileError,
    SnapshotInProgressError,
    StorageError,
    UnavailableError,
    UnknownSnapshotError,
)
from service.schemas.names import NAME_PATTERN
from service.settings import Settings
from service.store.connection import sync_directory
from service.store.interface import Store

log = logging.getLogger(__name__)

SUFFIX = ".tar"
_ASKED, _SCHEDULED = "snapshot", "scheduled"
_MAKING = ".making"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that there is; `size`: of its file, in bytes."""

    name: str
    file: Path
    size: int
    manifest: archive.Manifest

    @property
    def scheduled(self) -> bool:
        """Whether nobody asked for it."""
        return self.name.startswith(_SCHEDULED)

    def described(self) -> dict[str, Any]:
        """As `service.schemas.snapshots.SnapshotInfo`."""
        manifest = self.manifest
        return {
            "name": self.name,
            "size": self.size,
            "checksum": manifest.checksum,
            "created": manifest.created.isoformat(timespec="milliseconds"),
            "collections": manifest.collections,
        }


class Snapshots:
    """The snapshots of a data directory that is in use.

    Parameters
    ----------
    store:
        What they are made of.
    settings:
        Where they are, how often one is made, and how many of those are kept.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._directory = settings.data / "snapshots"
        self._making = threading.Lock()
        self._stopping = threading.Event()
        self._scheduler: threading.Thread | None = None
        self._clear()
        for snapshot in self.all()[-1:]:
            metrics.snapshot_made(snapshot.manifest.created.timestamp(), snapshot.size)

    def start(self) -> None:
        """Begin making snapshots as the settings say."""
        if self._settings.snapshot_minutes is not None:
            interval = timedelta(minutes=self._settings.snapshot_minutes)
            self._scheduler = threading.Thread(
                target=self._make_regularly, args=(interval,), name="ccq-snapshot", daemon=True
            )
            self._scheduler.start()

    def close(self) -> None:
        """Give up the one that is being made; none is from now on."""
        self._stopping.set()
        if self._scheduler is not None:
            self._scheduler.join()
        self._making.acquire()

    def make(self, *, scheduled: bool = False) -> Snapshot:
        """Make one; it is on disk on return. It goes on when the request that asks for it is over.

        Raises
        ------
        SnapshotInProgressError
            Another is being made.
        StorageFullError, StorageError, UnavailableError
            There is no room for it, the database failed, or the server stops: there is no new one, and nothing else
            was changed.
        """
        if not self._making.acquire(blocking=False):
            raise SnapshotInProgressError("expected one snapshot at one time, and another is being made")
        try:
            return Context().run(self._make, _SCHEDULED if scheduled else _ASKED)
        finally:
            self._making.release()

    def all(self) -> list[Snapshot]:
        """Those that there are and can be read, from the oldest to the newest."""
        found = []
        for file in self._directory.glob("*" + SUFFIX):
            try:
                found.append(self.get(file.name.removesuffix(SUFFIX)))
            except (UnknownSnapshotError, StorageError, OSError) as error:
                log.warning("snapshots: %s is passed over: %s", file, error)
        return sorted(found, key=lambda snapshot: snapshot.manifest.created)

    def get(self, name: str) -> Snapshot:
        """One; UnknownSnapshotError if there is none of this name, StorageError if its file is damaged."""
        file = self._file(name)
        try:
            return Snapshot(name, file, file.stat().st_size, archive.read_manifest(file))
        except FileNotFoundError:
            raise UnknownSnapshotError(name) from None
        except SnapshotFileError as error:
            raise StorageError(error.detail) from error

    def delete(self, name: str) -> None:
        """Delete one; UnknownSnapshotError if there is none of this name."""
        try:
            self._file(name).unlink()
        except FileNotFoundError:
            raise UnknownSnapshotError(name) from None

    def _file(self, name: str) -> Path:
        if not re.fullmatch(NAME_PATTERN, name):
            raise UnknownSnapshotError(name)
        return self._directory / (name + SUFFIX)

    def _make(self, kind: str) -> Snapshot:
        began = time.perf_counter()
        making = self._directory / _MAKING
        try:
            with disk_errors("the snapshot"):
                making.mkdir(parents=True, exist_ok=True)
                self._check_room()
                database, file = making / "database", making / "file"
                copied = self._store.copy(database, self._check)
                created = datetime.now(UTC)
                manifest = archive.write(file, database, copied, created, self._check)
                name = f"{kind}-{created:%Y%m%dT%H%M%S.%f}Z"
                size = file.stat().st_size
                file.replace(self._file(name))
                sync_directory(self._directory)
        finally:
            self._clear()
        took = time.perf_counter() - began
        metrics.snapshot_made(created.timestamp(), size, took)
        log.info("snapshot %s was made: %d bytes, %.1f s", name, size, took)
        return Snapshot(name, self._file(name), size, manifest)

    def _check(self) -> None:
        if self._stopping.is_set():
            raise UnavailableError("the server stops; the snapshot was not completed")

    def _check_room(self) -> None:
        """A disk that a snapshot fills is full for writes too: better not to begin."""
        check_room(self._directory, 2 * self._store.size(), "a snapshot while it is made")

    def _clear(self) -> None:
        """Remove what was being made."""
        shutil.rmtree(self._directory / _MAKING, ignore_errors=True)

    # -- regularly -------------------------------------------------------------------------------------------------

    def _make_regularly(self, interval: timedelta) -> None:
        made = [snapshot.manifest.created for snapshot in self.all() if snapshot.scheduled]
        wait = min(made[-1] + interval - datetime.now(UTC), interval) if made else interval  # clocks may be set back
        while not self._stopping.wait(max(wait.total_seconds(), 0)):
            wait = interval
            try:
                self.make(scheduled=True)
                self._delete_old()
            except Exception:
                log.exception("the scheduled snapshot was not made, or old ones were not deleted")

    def _delete_old(self) -> None:
        scheduled = [snapshot.name for snapshot in self.all() if snapshot.scheduled]
        for name in scheduled[: -self._settings.snapshot_keep]:
            self.delete(name)
