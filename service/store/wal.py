"""What a write-ahead log holds, read without SQLite, which passes over all that stands behind damage without a word.

SQLite reads a log up to the first frame whose checksum is wrong. Behind that place there may be the one write that was
under way at the end, which nobody was told to be durable. More than one means that acknowledged writes would be lost.
The format: https://www.sqlite.org/fileformat2.html#walformat
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

_HEADER = 32
_FRAME = np.dtype([("page", ">u4"), ("size", ">u4"), ("salt", ">u8"), ("checksum", ">u8")])


def writes_behind(log: Path, frames: int) -> int:
    """How many whole writes stand in a log behind its first frames, which are those that SQLite found to be good.

    Where the log's header is damaged, so that it cannot be told what is of this log, every write counts.
    """
    with log.open("rb") as file:
        header = file.read(_HEADER)
        length = log.stat().st_size
    if length <= _HEADER:
        return 0
    sound = _is_sound(header)
    page_size = int.from_bytes(header[8:12], "big") if sound else 4096
    found = np.memmap(log, np.uint8, "r", _HEADER)
    size = _FRAME.itemsize + page_size
    count = len(found) // size
    table = found[: count * size].reshape(count, size)[frames:, : _FRAME.itemsize]
    heads = np.ascontiguousarray(table).view(_FRAME).ravel()
    ours = heads["salt"] == int.from_bytes(header[16:24], "big") if sound else heads["salt"] != 0
    return int(np.count_nonzero(ours & (heads["size"] != 0)))


def _is_sound(header: bytes) -> bool:
    """Whether a log's header has its checksum."""
    order = ">" if header[3] & 1 else "<"
    first = second = 0
    words = struct.unpack(f"{order}6I", header[:24])
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return header[:3] == b"\x37\x7f\x06" and struct.unpack(">2I", header[24:]) == (first, second)
