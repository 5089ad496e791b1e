"""Features that a client sends as an `.npz` file: checked to the last number before anything is begun with them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ccq_core import CCQ
from ccq_core.errors import FeatureError, InvalidInputError
from ccq_core.features import check_features
from service.disk import disk_errors
from service.errors import CoreInputError, Fault, InvalidRequestError
from service.jobs.arrays import rows_together, written
from service.places import shorten
from service.schemas.training import TrainingOptions

UPLOAD = "upload.npz"
_SUFFIX = ".npy"
_MOST_ARRAYS = 100
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def unpack(upload: Path, directory: Path, model: CCQ, most_bytes: int) -> dict[str, int]:
    """Write the arrays of an `.npz` file where training reads them: the dimension of each modality.

    Parameters
    ----------
    upload:
        The file: one array (n, P_v) of numbers for each modality; a row of NaN marks an absent one. Nothing in it is
        executed, and no more of it is in memory than some megabytes.
    directory:
        See `service.jobs.arrays.written`.
    model:
        What is to be trained; its settings have to fit.
    most_bytes:
        How much the arrays may take as float32.

    Raises
    ------
    InvalidRequestError
        No such file, or arrays of other kinds and shapes.
    CoreInputError
        Numbers, names or settings that cannot be trained on; names the array and the row.
    StorageFullError, StorageError
    """
    with ExitStack() as stack:
        with _reading():
            archive = stack.enter_context(zipfile.ZipFile(upload))
            arrays = {name: stack.enter_context(_opened(archive, info)) for name, info in _members(archive).items()}
        dims = {name: array.dim for name, array in arrays.items()}
        n = _check_together(arrays, most_bytes)
        _check_settings(model, dims)
        rows = rows_together(dims)
        with disk_errors("the features"), written(directory, dims) as take:
            for lo in range(0, n, rows):
                with _reading():
                    parts = {name: array.read(min(rows, n - lo)) for name, array in arrays.items()}
                with _located(lo):
                    take(check_features(parts, first=lo))
    return dims


def setting_at_fault(error: InvalidInputError, place: str) -> Fault:
    """The place of a setting that the core refuses: its message begins with its name."""
    name = str(error).partition(":")[0].partition("[")[0]
    return Fault(f"{place}{name}" if name in TrainingOptions.model_fields else "#", str(error))


@dataclass
class _Array:
    """An array of the file, whose rows are read one after the other."""

    name: str
    file: IO[bytes]
    rows: int
    dim: int
    dtype: np.dtype[Any]

    def read(self, rows: int) -> NDArray[Any]:
        size = rows * self.dim * self.dtype.itemsize
        data = bytearray()
        while len(data) < size:
            chunk = self.file.read(size - len(data))
            if not chunk:
                raise EOFError(f"array {self.name!r} ends before its last row")
            data += chunk
        return np.frombuffer(data, self.dtype).reshape(rows, self.dim)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(_SUFFIX)
        if name == info.filename:
            raise _refused("#", f"expected arrays alone, got {shorten(info.filename)}")
        if name in found:
            raise _refused(_place(name), f"the same array twice, {shorten(name)}")
        found[name] = info
    if len(found) > _MOST_ARRAYS:
        raise _refused("#", f"expected at most {_MOST_ARRAYS} arrays, got {len(found)}")
    if not found:
        raise _refused("#", "expected at least one array, got none")
    return found


@contextmanager
def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[_Array]:
    name = info.filename.removesuffix(_SUFFIX)
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise _refused(_place(name), f"{name}: expected a plain array of numbers, got one in format {version}")
        shape, fortran, dtype = _HEADERS[version](file)
        if dtype.kind not in "fiu" or len(shape) != 2:
            raise _refused(
                _place(name), f"{name}: expected numbers of shape (n, P), got {shorten(str(dtype))} of {shape}"
            )
        rows, dim = shape
        if rows < 1 or dim < 1:
            raise _refused(_place(name), f"{name}: expected at least one row and one column, got {shape}")
        if fortran and rows > 1 and dim > 1:
            raise _refused(_place(name), f"{name}: rows lie apart (Fortran order); save np.ascontiguousarray of it")
        yield _Array(name, file, rows, dim, dtype)


def _check_together(arrays: Mapping[str, _Array], most_bytes: int) -> int:
    rows = {name: array.rows for name, array in arrays.items()}
    if len(set(rows.values())) > 1:
        raise _refused(
            "#", f"every modality needs the same number of rows, got {rows}; mark absent ones by rows of NaN"
        )
    size = sum(4 * array.rows * array.dim for array in arrays.values())
    if size > most_bytes:
        raise _refused("#", f"expected arrays of at most {most_bytes} bytes as float32, got {size}")
    return next(iter(rows.values()))


def _check_settings(model: CCQ, dims: Mapping[str, int]) -> None:
    try:
        model.check(dims)
    except InvalidInputError as error:
        raise CoreInputError(error, setting_at_fault(error, "?")) from None


@contextmanager
def _located(first: int) -> Iterator[None]:
    """Name the row at fault; `first` is the number of the first one that is looked at."""
    try:
        yield
    except FeatureError as error:
        row = None if error.row is None else first + error.row
        place = error.modality if row is None else f"{error.modality}[{row}]"
        pointer = _place(error.modality) if row is None else f"{_place(error.modality)}/{row}"
        raise CoreInputError(error, Fault(pointer, f"{place}: {error.reason}")) from None
    except InvalidInputError as error:
        raise CoreInputError(error, Fault("#", str(error))) from None


@contextmanager
def _reading() -> Iterator[None]:
    """Turn whatever comes of a broken file into InvalidRequestError."""
    try:
        yield
    except InvalidRequestError:
        raise
    except Exception as error:  # from BadZipFile to TokenError
        raise _refused("#", f"expected an .npz file, of which one is not readable: {shorten(str(error))}") from None


def _refused(pointer: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault(pointer, reason)])


def _place(name: str) -> str:
    return Fault.at((name,), "").pointer
