"""Features on their way into a directory, as files that training reads batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from ccq_core.features import FeatureSet
from service.store.connection import sync_directory

_FOLDER = "features"
_DTYPE = np.dtype("<f4")
_BATCH_BYTES = 32 << 20
_MOST_ROWS, _LEAST_ROWS = 1 << 15, 1 << 10


def rows_together(dims: Mapping[str, int]) -> int:
    """How many objects of these dimensions are dealt with at one time: some megabytes."""
    return max(_LEAST_ROWS, min(_MOST_ROWS, _BATCH_BYTES // (_DTYPE.itemsize * sum(dims.values()))))


def feature_files(directory: Path) -> dict[str, Path]:
    """The files that `written` has left in a directory, by modality and in its order; none if it had not ended.

    Each is an array (n, P_v) float32.
    """
    return {file.stem.partition("-")[2]: file for file in sorted((directory / _FOLDER).glob("*.npy"))}


@contextmanager
def written(directory: Path, dims: Mapping[str, int]) -> Iterator[Callable[[FeatureSet], None]]:
    """Write features part by part: what is given takes the next objects. They are all there at the end, or none.

    Parameters
    ----------
    directory:
        Where the files go; see `feature_files`.
    dims:
        Dimension of each modality. Objects that lack one get a row of NaN.
    """
    part = directory / f"{_FOLDER}.part"
    part.mkdir(exist_ok=True)
    with ExitStack() as stack:
        # Numbers keep the order, which is that of the model.
        names = {name: part / f"{number:03}-{name}.npy" for number, name in enumerate(dims)}
        files = {name: stack.enter_context(path.open("wb")) for name, path in names.items()}
        rows = 0
        for name, file in files.items():
            _write_header(file, rows, dims[name])

        def take(features: FeatureSet) -> None:
            nonlocal rows
            rows += features.n
            for name, file in files.items():
                array = features.arrays.get(name, np.zeros((features.n, dims[name]), dtype=np.float32))
                present = features.present.get(name, np.zeros(features.n, dtype=bool))
                file.write(np.where(present[:, None], array, np.float32(np.nan)).astype(_DTYPE, copy=False).data)

        yield take
        for name, file in files.items():
            file.seek(0)
            _write_header(file, rows, dims[name])
            file.flush()
            os.fsync(file.fileno())
    part.replace(directory / _FOLDER)
    for changed in (directory / _FOLDER, directory, directory.parent):
        sync_directory(changed)


def _write_header(file: IO[bytes], rows: int, dim: int) -> None:
    """NumPy leaves room for more rows, so that a header can be written again."""
    header = {"descr": _DTYPE.str, "fortran_order": False, "shape": (rows, dim)}
    np.lib.format.write_array_header_1_0(file, header)
