"""Feature arrays named on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError
from ccq_core.evaluation import features_of, read_npy, read_npz
from ccq_core.features import check_table

DATA_HELP = """DATA is NAME=FILE.npy for each modality (shape (n, P); a row of NaN marks an object without it), or one
FILE.npz whose two-dimensional arrays are called by modality, NAME or NAME_train."""


def read_features(sources: Sequence[str], *, vectors: bool = False) -> dict[str, NDArray[Any]]:
    """Arrays (n, P) of numbers by modality, from `NAME=FILE.npy` words or a single `FILE.npz`.

    Parameters
    ----------
    vectors:
        Take an array of one dimension for one vector.

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
        array = read_npy(path)
        features[name] = check_table(name, array[None] if vectors and array.ndim == 1 else array)
    return features
