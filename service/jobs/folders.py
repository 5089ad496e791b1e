"""The directories of jobs, in the directory `jobs` of the data directory."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path


class Folders:
    """One directory for each job, named by its id.

    Parameters
    ----------
    data:
        The data directory.
    """

    def __init__(self, data: Path) -> None:
        self._root = data / "jobs"

    def of(self, job: str) -> Path:
        """The directory of a job, which is made if there is none."""
        directory = self._root / job
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def remove(self, job: str) -> None:
        """Remove the directory of a job and all that is in it, if there is one."""
        shutil.rmtree(self._root / job, ignore_errors=True)

    def keep(self, jobs: Collection[str]) -> None:
        """Remove all directories but those of these jobs: what is left of requests that a crash cut short."""
        if self._root.is_dir():
            for directory in self._root.iterdir():
                if directory.name not in jobs:
                    self.remove(directory.name)
