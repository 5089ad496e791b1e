"""Feature arrays named on the command line."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError
from ccq_core.evaluation import features_of, read_npz

DATA_HELP = """DATA is NAME=FILE.npy for each modality (shape (n, P); a row of NaN marks an object without it), or one
FILE.npz whose two-dimensional arrays are called by modality, NAME or NAME_train."""


def read_features(sources: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Arrays by modality, from `NAME=FILE.npy` words or a single `FILE.npz`.

    Raises
    ------
    InvalidInputError
        A file that holds something else, or a modality named twice.
    """
    if len(sources) == 1 and "=" not in sources[0]:
        arrays = read_npz(sources[0])
        found = features_of(arrays, "_train") or features_of(arrays)
        if not found:
            raise InvalidInputError(f"{sources[0]}: holds no two-dimensional array of numbers; it has {sorted(arrays)}")
        return found
    features: dict[str, NDArray[Any]] = {}
    for source in sources:
        name, equals, path = source.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{source!r}: expected NAME=FILE.npy, or a single FILE.npz")
        if name in features:
            raise InvalidInputError(f"modality {name!r} is named twice")
        features[name] = read_array(path)
    return features


def check_output(path: str) -> None:
    """Refuse a file that could not be written, before the work is done; raises OSError."""
    directory = Path(path).absolute().parent
    if not directory.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"no directory {directory}", path)
    if not os.access(directory, os.W_OK):
        raise PermissionError(errno.EACCES, f"directory {directory} cannot be written to", path)


def read_array(path: str) -> NDArray[Any]:
    """The array of an `.npy` file, mapped from disk where possible."""
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InvalidInputError(f"{path}: not a readable .npy file ({error})") from None
    return array
