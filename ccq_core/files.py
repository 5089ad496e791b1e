"""Array files as NumPy writes them, read without executing anything in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError

Arrays = dict[str, NDArray[Any]]
_KINDS = {
    b"\x93NUMPY": "it is a NumPy array, a file .npy",
    b"PK\x03\x04": "it is a zip archive, as files .npz are",
    b"PAR1": "it is a Parquet file",
}


def read_npz(path: str | os.PathLike[str]) -> Arrays:
    """All arrays of an `.npz` file, without executing anything in it.

    Raises
    ------
    FileNotFoundError, InvalidInputError
    """
    # np.load would leave a file open that it cannot read.
    with Path(path).open("rb") as file, _reading(path, ".npz"):
        arrays = np.load(file, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise InvalidInputError(f"{os.fspath(path)}: not an .npz file: it is a NumPy array, a file .npy")
        return {key: arrays[key] for key in arrays.files}


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an `.npy` file, mapped from disk; raises what `read_npz` raises."""
    with Path(path).open("rb") as file, _reading(path, ".npy"):
        np.lib.format.read_magic(file)  # an .npz file has none
        array: NDArray[Any] = np.load(path, allow_pickle=False, mmap_mode="r")
        return array


def kind_of(head: bytes) -> str:
    """What a file is that begins so, in words; empty if that is not known.

    Parameters
    ----------
    head:
        Its first bytes, nine or more if it has as many.
    """
    if not head:
        return "it is empty"
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            return kind
    if head[8:9] == b"{":
        return "it is a safetensors file, as models are"
    text = head.isascii() and all(byte >= 32 or byte in b"\t\n\r" for byte in head)
    return "it is text" if text else ""


@contextmanager
def _reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever NumPy raises of a broken file into InvalidInputError."""
    try:
        yield
    except InvalidInputError:
        raise
    except Exception as error:  # from EOFError to TokenError
        with Path(path).open("rb") as file:
            found = kind_of(file.read(64))
        if found and not found.endswith((f" {kind}", f" {kind} are")):
            raise InvalidInputError(f"{os.fspath(path)}: not a readable {kind} file: {found}") from None
        # NumPy would advise to execute what it takes for Python objects, which any file is that is none of its own.
        reason: object = "it is of another kind, or holds Python objects" if "allow_pickle" in str(error) else error
        if "Python objects" in str(error):
            reason = "it holds Python objects: make it of numbers"
        raise InvalidInputError(f"{os.fspath(path)}: not a readable {kind} file ({reason})") from None
