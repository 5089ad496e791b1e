"""Feature arrays named on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ccq_cli.console import err
from ccq_core.batches import ROWS, NpyBatches, ParquetBatches, parquet_columns
from ccq_core.errors import InvalidInputError
from ccq_core.evaluation import features_of
from ccq_core.features import Features, check_table
from ccq_core.files import read_npy, read_npz

TRAINING_HELP = """DATA is NAME=FILE.npy for each modality (shape (n, P); a row of NaN marks an object without it), or
one FILE.npz whose two-dimensional arrays are called by modality, NAME or NAME_train, or files FILE.parquet with a
column of lists for each modality (a null marks an absent one). With --batch-rows a modality may have several .npy
files, whose rows follow each other."""

DATA_HELP = """DATA is NAME=FILE.npy for each modality (shape (n, P); a row of NaN marks an object without it), or one
FILE.npz whose two-dimensional arrays are called by modality, NAME or NAME_train, or files FILE.parquet with a column of
lists for each modality (a null marks an absent one)."""


FILES = "ccq_cli.files"
"""Where a verb's context keeps what files the features of each modality are from, to name them in messages."""


def read_features(
    sources: Sequence[str], chosen: Sequence[str] = (), *, vectors: bool = False, complete: bool = False
) -> dict[str, NDArray[Any]]:
    """Arrays (n, P) of numbers by modality, from `NAME=FILE.npy` words, a single `FILE.npz`, or `FILE.parquet` words.

    Parameters
    ----------
    chosen:
        Columns of Parquet files that are modalities; see `feature_columns`.
    vectors:
        Take an array of one dimension for one vector.
    complete:
        Refuse a column of Parquet files that has only nulls, instead of taking the modality for absent.

    Raises
    ------
    InvalidInputError
        A file that holds something else, or a modality named twice.
    """
    if sources and all(map(is_parquet, sources)):
        return _joined(open_batches(sources, ROWS, chosen, complete=complete))
    if chosen:
        raise click.UsageError("--column is for files FILE.parquet")
    if len(sources) == 1 and "=" not in sources[0]:
        if sources[0].endswith(".npy"):
            raise click.BadParameter(f"{sources[0]!r}: expected NAME=FILE.npy, as in image={sources[0]}")
        arrays = read_npz(sources[0])
        found = features_of(arrays, "_train") or features_of(arrays)
        remember(dict.fromkeys(found, sources[0]))
        if not found:
            raise InvalidInputError(f"{sources[0]}: holds no two-dimensional array of numbers; it has {sorted(arrays)}")
        return found
    features: dict[str, NDArray[Any]] = {}
    for source in sources:
        name, equals, path = source.partition("=")
        if not equals or not name:
            raise click.BadParameter(
                f"{source!r}: expected NAME=FILE.npy, a single FILE.npz, or only files FILE.parquet"
            )
        if path.endswith(".parquet"):
            raise click.BadParameter(f"{source!r}: expected {path} alone, whose columns are called by modality")
        if name in features:
            raise InvalidInputError(
                f"modality {name!r} is named twice (only `ccq train` takes several files of one, with --batch-rows)"
            )
        remember({name: path})
        array = read_npy(path)
        features[name] = check_table(name, array[None] if vectors and array.ndim == 1 else array)
    return features


def _joined(batches: Iterable[Features]) -> dict[str, NDArray[Any]]:
    """Batches as one array for each modality, with rows of NaN where a batch has nothing of it."""
    parts = [{name: np.asarray(array) for name, array in batch.items()} for batch in batches]
    sizes = [len(next(iter(part.values()))) for part in parts]
    found = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        widths = {part[name].shape[1] for part in parts if name in part}
        if len(widths) > 1:
            raise InvalidInputError(f"column {name!r}: expected lists of one length, got {sorted(widths)}")
        (width,) = widths
        found[name] = np.concatenate(
            [
                part[name] if name in part else np.full((n, width), np.nan, dtype=np.float32)
                for part, n in zip(parts, sizes, strict=True)
            ]
        )
    return found


def remember(files: dict[str, str]) -> None:
    """Let messages name the files that the features of modalities are from."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(FILES, {}).update(files)


column_option = click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME",
    help="Of Parquet files: a column of lists of numbers that is a modality; may be repeated. By default all lists of "
    "floats are, and lists of integers are not.",
)


def open_batches(
    sources: Sequence[str], rows: int, chosen: Sequence[str] = (), *, complete: bool = True
) -> Iterable[Features]:
    """Batches of the data on disk, from `NAME=FILE.npy` words or `FILE.parquet` words; see `read_features`.

    Raises
    ------
    InvalidInputError
        Files of different kinds, and what `ccq_core.batches` raises.
    """
    if all(is_parquet(source) for source in sources):
        columns = feature_columns(sources[0], chosen)
        if not columns:
            reason = "expected columns of lists of floats, called by modality, or others that --column names"
            raise InvalidInputError(f"{sources[0]}: {reason}")
        for source in sources[1:]:
            if missing := [name for name in columns if name not in parquet_columns(source)]:
                raise InvalidInputError(f"{source}: has no lists of numbers {', '.join(missing)}, as {sources[0]} has")
        return ParquetBatches(sources, {name: name for name in columns}, rows, complete=complete)
    files: dict[str, list[str]] = {}
    for source in sources:
        name, equals, path = source.partition("=")
        if not equals or not name or is_parquet(source):
            raise click.BadParameter(f"{source!r}: in batches, expected NAME=FILE.npy, or only files FILE.parquet")
        files.setdefault(name, []).append(path)
    remember({name: paths[0] for name, paths in files.items() if len(paths) == 1})
    return NpyBatches(files, rows)


def is_parquet(source: str) -> bool:
    """Whether this word names a Parquet file."""
    return "=" not in source and source.endswith(".parquet")


def feature_columns(path: str, chosen: Sequence[str]) -> list[str]:
    """The columns that are features: those that are chosen or, where none are, all of lists of floats.

    Raises
    ------
    FileNotFoundError, InvalidInputError
        No Parquet file, or a chosen column is none of lists of numbers.
    """
    lists = parquet_columns(path)
    for name in chosen:
        if name not in lists:
            reason = f"expected a column of lists of numbers ({', '.join(lists) or 'there is none'})"
            raise InvalidInputError(f"{path}: --column {name}: {reason}")
    floats = parquet_columns(path, integers=False)
    if chosen:
        if left := [name for name in floats if name not in chosen]:
            err.print(
                f"note: columns of lists of floats that --column does not name are no modalities: {', '.join(left)}"
            )
        return [name for name in lists if name in chosen]
    others = [name for name in lists if name not in floats]
    if others:
        err.print(
            f"note: columns of lists of integers are taken for payload: {', '.join(others)}; to have modalities of "
            f"them name all that are: {' '.join(f'--column {name}' for name in lists)}"
        )
    return floats
