"""What the disk has to say, as the service's errors."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.errors import StorageError, StorageFullError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Turn errors of files into the service's; `what` was to be written.

    Raises
    ------
    StorageFullError, StorageError
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise StorageFullError("the disk that holds the data directory is full") from error
        raise StorageError(f"{what} could not be written; the server's log has the details") from error


def check_room(directory: Path, needed: int, what: str) -> None:
    """StorageFullError if so many bytes do not fit: a disk that is filled up is full for writes too."""
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise StorageFullError(f"{what} needs {needed} bytes of disk, {free} are free")


def make_private(directory: Path) -> None:
    """Make a directory that its owner alone can enter, unless it is there; OSError if it cannot be made."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
