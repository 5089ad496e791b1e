"""Files that are there whole or not at all, and files that are read in parts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name once all of it is on disk."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def chunks(path: Path) -> Iterator[bytes]:
    """A file, part by part."""
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            yield part


async def chunks_async(path: Path) -> AsyncIterator[bytes]:
    """The same, read in a thread."""
    import asyncio

    with await asyncio.to_thread(path.open, "rb") as file:
        while part := await asyncio.to_thread(file.read, _CHUNK):
            yield part
