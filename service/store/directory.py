"""One process at a time on a data directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from service.disk import make_private
from service.errors import DirectoryInUseError, StartError

LOCK_NAME = "LOCK"


class DirectoryLock:
    """Holds the lock of a data directory until `release`, or until the process ends, however it ends.

    Parameters
    ----------
    directory:
        Created if it is missing.

    Attributes
    ----------
    signed:
        Whether a process has once called `sign` here.

    Raises
    ------
    DirectoryInUseError
        Another process holds it; the message says which.
    StartError
        The directory cannot be made or written to.
    """

    def __init__(self, directory: Path) -> None:
        try:
            make_private(directory)
            self._handle = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StartError(f"data directory {directory}: {error.strerror}") from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._handle, 32).decode("ascii", "replace").strip()
            os.close(self._handle)
            who = f"process {holder}" if holder else "another process"
            raise DirectoryInUseError(
                f"data directory {directory} is in use by {who}: stop that one, or choose another directory"
            ) from None
        self.signed = os.fstat(self._handle).st_size > 0

    def sign(self) -> None:
        """Write down which process holds the lock. For when the directory is known to have its database."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go. The file stays: removing it could take away the lock of a process that has just opened it."""
        os.close(self._handle)
