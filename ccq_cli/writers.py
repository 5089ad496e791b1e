"""What `ccq export` writes: a directory of arrays and lines. Whole, or not there."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import orjson
from numpy.typing import DTypeLike, NDArray

from ccq_cli.exported import MANIFEST
from ccq_cli.origins import Origin, Stored
from service.store.connection import sync_directory

_HEADER = 128
_ROWS = 1 << 14


class Writer(Protocol):
    """Takes items in order."""

    def write(self, part: Stored) -> None:
        """Add items."""

    def finish(self, keep: NDArray[np.bool_]) -> None:
        """Complete the files, without the rows that are not in `keep` (n,) bool."""

    def close(self) -> None:
        """Close the files, complete or not."""


class NpyFile:
    """An `.npy` file of rows (n, P), of which nobody knows at first how many there will be.

    Parameters
    ----------
    path, dtype, width:
        Of the file; its header is written last, to a place of constant size.
    """

    def __init__(self, path: Path, dtype: DTypeLike, width: int) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._width = width
        self._file = path.open("w+b")
        self._file.write(bytes(_HEADER))

    def write(self, rows: NDArray[Any]) -> None:
        """Add rows."""
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())

    def close(self) -> None:
        """Close the file, complete or not."""
        self._file.close()

    def finish(self, keep: NDArray[np.bool_]) -> None:
        """Drop the rows that are not in `keep`, write the header, and sync to disk."""
        n = int(keep.sum())
        with self._file as file:
            if n < len(keep):
                size = self._dtype.itemsize * self._width
                at = _HEADER  # rows only move towards the front
                for lo in range(0, len(keep), _ROWS):
                    part = keep[lo : lo + _ROWS]
                    file.seek(_HEADER + lo * size)
                    rows = np.frombuffer(file.read(len(part) * size), np.uint8).reshape(len(part), size)[part]
                    file.seek(at)
                    at += file.write(rows.tobytes())
                file.truncate(at)
            fields = f"{{'descr': '{self._dtype.str}', 'fortran_order': False, 'shape': ({n}, {self._width}), }}"
            text = fields.encode().ljust(_HEADER - 11) + b"\n"
            file.seek(0)
            file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
            sync(file)


class DirectoryWriter:
    """A directory of `items.jsonl`, arrays, the model and the manifest (see `ccq_cli.exported`)."""

    def __init__(self, directory: Path, origin: Origin) -> None:
        directory.mkdir()
        manifest = origin.manifest
        self._lines = manifest.items_file(directory)
        self._items = self._lines.open("wb")
        self._present = NpyFile(manifest.present_file(directory), np.bool_, len(manifest.databases))
        self._codes = [
            NpyFile(manifest.code_file(directory, name), np.uint8, manifest.code_width) for name in manifest.databases
        ]
        self._features = {
            name: NpyFile(manifest.feature_file(directory, name), np.float32, origin.dims[name])
            for name in manifest.features
        }
        with manifest.model_file(directory).open("wb") as file:
            origin.model(file)
            sync(file)
        with (directory / MANIFEST).open("wb") as file:
            file.write(manifest.dump())
            sync(file)

    def write(self, part: Stored) -> None:
        """Add items."""
        for item_id, payload in zip(part.ids, part.payloads, strict=True):
            fragment = None if payload is None else orjson.Fragment(payload)
            self._items.write(orjson.dumps({"id": item_id, "payload": fragment}) + b"\n")
        self._present.write(part.codes.present)
        for at, file in enumerate(self._codes):
            file.write(part.codes.rows[:, at])
        for name, file in self._features.items():
            file.write(part.features[name])

    def finish(self, keep: NDArray[np.bool_]) -> None:
        """Complete the files, without the rows that are not in `keep` (n,) bool."""
        with self._items as file:
            sync(file)
        if not keep.all():
            kept = self._lines.with_suffix(".kept")
            with self._lines.open("rb") as lines, kept.open("wb") as file:
                file.writelines(line for line, wanted in zip(lines, keep.tolist(), strict=True) if wanted)
                sync(file)
            kept.replace(self._lines)
        for array in self._arrays():
            array.finish(keep)

    def close(self) -> None:
        """Close the files, complete or not."""
        self._items.close()
        for array in self._arrays():
            array.close()

    def _arrays(self) -> tuple[NpyFile, ...]:
        return (self._present, *self._codes, *self._features.values())


@contextmanager
def written(out: Path) -> Iterator[Path]:
    """A place for a new directory or file that gets the name `out` at the end, if all went well.

    Raises
    ------
    OSError
        There is something under that name already, or nothing can be written there.
    """
    if out.exists():
        reason = f"{os.strerror(errno.EEXIST)}: delete it, or choose another name"
        raise FileExistsError(errno.EEXIST, reason, os.fspath(out))
    try:
        place = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(out)) from None
    try:
        yield place / out.name
        (place / out.name).rename(out)
        sync_directory(out.parent)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def sync(file: IO[bytes]) -> None:
    """Bring to disk what was written to a file."""
    file.flush()
    os.fsync(file.fileno())
