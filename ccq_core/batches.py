"""Training data on disk, a batch in memory at a time: what `CCQ.fit` takes besides arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError
from ccq_core.features import Features, check_whole
from ccq_core.files import read_npy

ROWS = 1 << 15
Path_ = str | os.PathLike[str]
Batch = dict[str, NDArray[Any]]


class Chain:
    """Batches of several sources, one after another: pairs, then images alone, then texts alone."""

    def __init__(self, *sources: Iterable[Features]) -> None:
        self._sources = sources

    def __iter__(self) -> Iterator[Features]:
        return chain.from_iterable(self._sources)


class NpyBatches:
    """Batches of `.npy` files.

    The files are read, not mapped: pages of a mapped file would count as this process's memory.

    Parameters
    ----------
    files:
        Modality name to a file of shape (n, P_v), or to several whose rows follow each other. All modalities have the
        same number of rows; a row of NaN marks an absent modality.
    rows:
        Objects in a batch.

    Raises
    ------
    FileNotFoundError, InvalidInputError
        A file that is missing, is no `.npy` file of two dimensions in C order, or does not fit the others.
    """

    def __init__(self, files: Mapping[str, Path_ | Sequence[Path_]], rows: int = ROWS) -> None:
        self.rows = check_whole("rows", rows, 1)
        if not files:
            raise InvalidInputError("files: expected at least one modality, got none")
        self._files: dict[str, list[_NpyFile]] = {
            name: [_read_header(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
            for name, paths in files.items()
        }
        for name, parts in self._files.items():
            if not parts:
                raise InvalidInputError(f"files: expected at least one for {name!r}, got none")
            for part in parts:
                if part.shape[1] != parts[0].shape[1]:
                    raise InvalidInputError(
                        f"{part.path}: expected {parts[0].shape[1]} numbers a row, got {part.shape[1]}"
                    )
        sizes = {name: sum(file.shape[0] for file in parts) for name, parts in self._files.items()}
        if len(set(sizes.values())) > 1:
            raise InvalidInputError(f"files: every modality needs the same number of rows, got {sizes}")
        self.n = next(iter(sizes.values()))

    def __iter__(self) -> Iterator[Batch]:
        streams = {name: _rows_of(files, self.rows) for name, files in self._files.items()}
        for _ in range(0, self.n, self.rows):
            yield {name: next(stream) for name, stream in streams.items()}


class ParquetBatches:
    """Batches of Parquet files whose columns hold lists of numbers.

    Needs pyarrow: `pip install 'ccq-search[parquet]'`.

    Parameters
    ----------
    paths:
        A file, or several whose rows follow each other.
    columns:
        Modality name to column name. A null marks an absent modality.
    rows:
        Objects in a batch, at most.
    complete:
        Refuse a column that has only nulls, at the end.

    Raises
    ------
    FileNotFoundError, InvalidInputError
        A file that is missing, or lacks such a column; while iterating, lists of unequal length.
    """

    def __init__(
        self,
        paths: Path_ | Sequence[Path_],
        columns: Mapping[str, str],
        rows: int = ROWS,
        *,
        complete: bool = True,
    ) -> None:
        self._complete = complete
        self.rows = min(check_whole("rows", rows, 1), 1 << 30)
        self.columns = dict(columns)
        self._paths = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
        if not self._paths or not self.columns:
            raise InvalidInputError(
                f"{', '.join(self._paths) or 'paths'}: expected files and columns of lists of numbers, got none"
            )
        for path in self._paths:
            found = parquet_columns(path)
            for column in self.columns.values():
                if found.count(column) != 1:
                    raise InvalidInputError(
                        f"{path}: expected one column {column!r} of lists of numbers, got {found or 'none'}"
                    )

    def __iter__(self) -> Iterator[Batch]:
        seen: set[str] = set()
        for path in self._paths:
            for batch in arrow_batches(path, self.rows, list(self.columns.values())):
                arrays = {
                    name: rows_of_lists(batch.column(column), f"{path}: column {column!r}")
                    for name, column in self.columns.items()
                }
                given = {name: array for name, array in arrays.items() if array is not None}
                if not given:
                    raise InvalidInputError(f"{path}: {batch.num_rows} rows in a row have no modality, only nulls")
                seen |= set(given)
                yield given
        for name, column in self.columns.items():
            if self._complete and name not in seen:
                raise InvalidInputError(f"{', '.join(self._paths)}: column {column!r} has only nulls")


def arrow_batches(path: str, rows: int, columns: list[str] | None) -> Iterator[Any]:
    """Record batches of a Parquet file, of up to `rows` rows; of all columns if `columns` is None.

    Raises
    ------
    InvalidInputError
        It cannot be read.
    """
    parquet = parquet_module()
    import pyarrow

    try:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(rows, columns=columns)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInputError(f"{path}: not a readable Parquet file ({' '.join(str(error).split())})") from None


def arrow_schema(path: Path_) -> tuple[Any, int]:
    """The Arrow schema of a Parquet file, and its number of rows.

    Raises
    ------
    FileNotFoundError, InvalidInputError
        It is missing, or no Parquet file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(2, "No such file", os.fspath(path))
    parquet = parquet_module()
    import pyarrow

    try:
        with parquet.ParquetFile(path) as file:
            return file.schema_arrow, int(file.metadata.num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInputError(f"{os.fspath(path)}: not a readable Parquet file ({error})") from None


def parquet_columns(path: Path_, *, integers: bool = True) -> list[str]:
    """Names of the columns that hold lists of numbers, or only of floats."""
    schema, _ = arrow_schema(path)
    return [field.name for field in schema if _holds_lists(field.type, integers)]


def _holds_lists(kind: Any, integers: bool) -> bool:
    """Whether an Arrow type is that of lists of floats, or of integers too."""
    from pyarrow import types

    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    return bool(types.is_floating(kind.value_type) or (integers and types.is_integer(kind.value_type)))


@dataclass(frozen=True)
class _NpyFile:
    path: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    offset: int


def _read_header(path: Path_) -> _NpyFile:
    name = os.fspath(path)
    array = read_npy(path)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not isinstance(array, np.memmap):
        raise InvalidInputError(f"{name}: expected numbers of shape (n, P), got {array.dtype} of {array.shape}")
    if not array.flags.c_contiguous:
        raise InvalidInputError(f"{name}: rows lie apart (Fortran order); save np.ascontiguousarray of the array")
    return _NpyFile(name, array.shape, array.dtype, array.offset)


def _rows_of(files: Sequence[_NpyFile], rows: int) -> Iterator[NDArray[Any]]:
    """All rows in parts of `rows`, whatever file they are in."""
    parts: list[NDArray[Any]] = []
    missing = rows
    for file in files:
        with Path(file.path).open("rb") as stream:
            stream.seek(file.offset)
            done = 0
            while done < file.shape[0]:
                n = min(missing, file.shape[0] - done)
                parts.append(_read(stream, file, n))
                done += n
                missing -= n
                if missing == 0:
                    yield _joined(parts)
                    parts, missing = [], rows
    if parts:
        yield _joined(parts)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _read(stream: BinaryIO, file: _NpyFile, rows: int) -> NDArray[Any]:
    part = np.fromfile(stream, file.dtype, rows * file.shape[1])
    if part.size != rows * file.shape[1]:
        raise InvalidInputError(f"{file.path}: the file has become shorter since it was opened")
    return part.reshape(rows, file.shape[1])


def parquet_module() -> Any:
    """pyarrow.parquet; InvalidInputError says how to install it."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise InvalidInputError("Parquet files need pyarrow: pip install 'ccq-search[parquet]'") from None
    return parquet


def rows_of_lists(column: Any, place: str) -> NDArray[Any] | None:
    """An Arrow array of lists as (n, P) numbers, rows of NaN for nulls; None where there are only these."""
    from pyarrow import compute

    lengths = np.asarray(compute.list_value_length(column).fill_null(-1))
    given = lengths >= 0
    widths = np.unique(lengths[given])
    if len(widths) > 1:
        raise InvalidInputError(f"{place}: expected lists of one length, got {widths[0]} and {widths[1]} numbers")
    if len(widths) == 0:
        return None
    if widths[0] == 0:
        raise InvalidInputError(f"{place}: expected numbers, got empty lists")
    values = column.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, widths[0])
    if given.all():
        return np.asarray(values)
    rows = np.full((len(lengths), widths[0]), np.nan, dtype=np.result_type(values.dtype, np.float32))
    rows[given] = values
    return rows
