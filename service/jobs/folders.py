"""The directories of jobs, in the directory `jobs` of the data directory."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from service.disk import disk_errors


class Folders:
    """One directory for each job, named by its id.

    Parameters
    ----------
    data:
        The data directory.
    """

    def __init__(self, data: Path) -> None:
        self._root = data / "jobs"
        self._found = [directory.name for directory in self._root.iterdir()] if self._root.is_dir() else []

    def of(self, job: str) -> Path:
        """The directory of a job, which is made if there is none; StorageFullError or StorageError if it cannot be."""
        directory = self._root / job
        with disk_errors("the directory of a job"):
            directory.mkdir(parents=True, exist_ok=True)
        return directory

    def remove(self, job: str) -> None:
        """Remove the directory of a job and all that is in it, if there is one."""
        shutil.rmtree(self._root / job, ignore_errors=True)

    def keep(self, jobs: Collection[str]) -> None:
        """Of the directories found at the start remove all but those of these jobs.

        The others are left of requests that a crash cut short.
        """
        for name in self._found:
            if name not in jobs:
                self.remove(name)
