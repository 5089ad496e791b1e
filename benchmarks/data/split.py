"""What both data sets share: drawing queries, drawing a training sample, an `.npz` for `ccq evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ccq_core.evaluation import LabelledData
from ccq_core.files import Arrays


def one_file(folder: Path, pattern: str) -> Path:
    """The one file below `folder` that matches.

    Raises
    ------
    FileNotFoundError
        None does, or several do.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    found = sorted(folder.rglob(pattern))
    if len(found) != 1:
        names = ", ".join(str(path.relative_to(folder)) for path in found) or "none"
        raise FileNotFoundError(f"{folder}: expected one file {pattern} in it or below it, got {names}")
    return found[0]


def read_array(path: Path) -> NDArray[Any]:
    """The array of an `.npy` file, mapped from disk.

    Raises
    ------
    FileNotFoundError, ValueError
        Not there; not such a file.
    """
    array = _read(path, "r")
    if isinstance(array, np.ndarray):
        return array
    raise ValueError(f"{path}: expected one array, an .npy file")


def read_arrays(path: Path) -> Arrays:
    """All arrays of an `.npz` file; raises what `read_array` raises."""
    arrays = _read(path, None)
    if isinstance(arrays, dict):
        return arrays
    raise ValueError(f"{path}: expected named arrays, an .npz file")


def _read(path: Path, mapping: Literal["r"] | None) -> NDArray[Any] | Arrays:
    try:
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                file.seek(0)
                with np.load(file, allow_pickle=False) as arrays:
                    return {key: arrays[key] for key in arrays.files}
        return np.asarray(np.load(path, mapping, allow_pickle=False))
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever NumPy and zipfile raise of a broken file
        raise ValueError(f"{path}: not a readable .npy or .npz file ({error})") from None


def split(features: Arrays, labels: NDArray[Any], queries: int, seed: int) -> LabelledData:
    """Draw queries; the rest, in its old order, is the database.

    Parameters
    ----------
    features:
        Modality name to (n, P_v).
    labels:
        (n, L) 0/1.
    queries:
        How many, less than n.

    Raises
    ------
    ValueError
        Not more objects than queries.
    """
    n = len(labels)
    if n <= queries:
        raise ValueError(f"expected more than {queries:,} objects, of which {queries:,} become queries, got {n:,}")
    chosen = np.zeros(n, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(n)[:queries]] = True
    return LabelledData(
        {name: array[~chosen] for name, array in features.items()},
        {name: array[chosen] for name, array in features.items()},
        labels[~chosen],
        labels[chosen],
    )


def training_sample(data: LabelledData, n: int = 10_000, seed: int = 0) -> Arrays:
    """Features of n objects of the database, drawn without replacement: what the paper trains on.

    `ccq_core.evaluation.evaluate` then takes a model of these and the whole of `data`.
    """
    rows = len(data.train_labels)
    if n > rows:
        raise ValueError(f"expected at most {rows:,} training objects, the whole database, got {n:,}")
    chosen = np.sort(np.random.default_rng(seed).permutation(rows)[:n])
    return {name: array[chosen] for name, array in data.train.items()}


def save(data: LabelledData, path: Path) -> None:
    """Write an `.npz` that `ccq_core.evaluation.load_dataset` reads, and with it `ccq evaluate`."""
    arrays = {f"{name}_train": array for name, array in data.train.items()}
    arrays |= {f"{name}_test": array for name, array in data.test.items()}
    np.savez(path, label_train=data.train_labels, label_test=data.test_labels, **arrays)  # type: ignore[arg-type]
