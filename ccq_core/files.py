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
            raise InvalidInputError(f"{os.fspath(path)}: expected an .npz file of named arrays, got one array")
        return {key: arrays[key] for key in arrays.files}


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an `.npy` file, mapped from disk; raises what `read_npz` raises."""
    with Path(path).open("rb") as file, _reading(path, ".npy"):
        np.lib.format.read_magic(file)  # an .npz file has none
        array: NDArray[Any] = np.load(path, allow_pickle=False, mmap_mode="r")
        return array


@contextmanager
def _reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever NumPy raises of a broken file into InvalidInputError."""
    try:
        yield
    except InvalidInputError:
        raise
    except Exception as error:  # from EOFError to TokenError
        # NumPy would advise to execute what it takes for Python objects, which any file is that is none of its own.
        reason = "it is of another kind, or holds Python objects" if "allow_pickle" in str(error) else error
        raise InvalidInputError(f"{os.fspath(path)}: not a readable {kind} file ({reason})") from None
