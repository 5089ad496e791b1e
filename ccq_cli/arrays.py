"""Items from arrays on disk, with ids and payloads as lines; and from a directory that `ccq export` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_cli.exported import NO_FEATURES, Manifest
from ccq_cli.lines import LineFile, ids_of, items_of
from ccq_cli.slices import Coded, Slice, cut
from ccq_core.errors import InvalidInputError
from ccq_core.files import read_npy
from service.records import Codes


@dataclass(frozen=True)
class CodeFiles:
    """Codes as `ccq export` writes them: (n, databases) bool, and (n, M + 1) uint8 for each database."""

    checksum: str
    present: NDArray[Any]
    rows: Mapping[str, NDArray[Any]]

    def slice(self, lo: int, hi: int) -> Coded:
        """Those of some rows."""
        rows = np.stack([array[lo:hi] for array in self.rows.values()], axis=1)
        return Coded(tuple(self.rows), self.checksum, Codes(np.asarray(self.present[lo:hi]), rows))


class ArraySource:
    """Arrays (n, P) by modality, and lines beside them.

    Parameters
    ----------
    features:
        The arrays; mapped from disk, they take no memory.
    ids, payloads:
        Files of ids and of JSON objects.
    items:
        Or one file of both.
    codes:
        To be stored instead of encoding features.

    Raises
    ------
    InvalidInputError
        Arrays or files of different numbers of rows.
    """

    def __init__(
        self,
        features: Mapping[str, NDArray[Any]],
        ids: Path | None = None,
        payloads: Path | None = None,
        items: Path | None = None,
        codes: CodeFiles | None = None,
        indexes: Sequence[str] = (),
    ) -> None:
        self.indexes = indexes
        sizes = {name: len(array) for name, array in features.items()}
        if codes is not None:
            sizes |= {f"codes of {name}": len(array) for name, array in codes.rows.items()}
            sizes["presence"] = len(codes.present)
        self.rows = next(iter(sizes.values()))
        if set(sizes.values()) != {self.rows}:
            raise InvalidInputError(f"the modalities have different numbers of rows: {sizes}")
        self._features = features
        self._codes = codes
        self._ids, self._payloads, self._items = (
            None if path is None else LineFile(path, self.rows) for path in (ids, payloads, items)
        )
        self.named = ids is not None or items is not None

    def slices(self, size: int) -> Iterator[Slice]:
        """All items in order, from `size` rows at a time; InvalidInputError names the file and row of a fault."""
        ids = None if self._ids is None else self._ids.parts(size)
        payloads = None if self._payloads is None else self._payloads.parts(size)
        items = None if self._items is None else self._items.parts(size)
        for lo in range(0, self.rows, size):
            hi = min(lo + size, self.rows)
            details: list[bytes | None] = list(repeat(None, hi - lo)) if payloads is None else [*next(payloads)]
            if self._items is not None and items is not None:
                names, details = items_of(self._items, next(items), lo)
            elif self._ids is not None and ids is not None:
                names = ids_of(self._ids, next(ids), lo)
            else:
                names = [str(row) for row in range(lo, hi)]
            coded = None if self._codes is None else self._codes.slice(lo, hi)
            yield cut(lo, names, details, {name: array[lo:hi] for name, array in self._features.items()}, coded)

    def payload_fault(self, row: int, reason: str) -> InvalidInputError:
        """The error that something is wrong with the payload of a row."""
        file = self._payloads or self._items
        return InvalidInputError(reason) if file is None else file.fault(row, reason)

    def twice(self, first: int, row: int, item_id: str) -> InvalidInputError:
        """The error that two rows have the same id."""
        file = self._ids or self._items
        where = "" if file is None else f"{file.path}: "
        return InvalidInputError(f"{where}lines {first + 1} and {row + 1} are both {item_id}")


def open_export(directory: Path, *, codes: bool) -> ArraySource:
    """What `ccq export` wrote to a directory.

    Parameters
    ----------
    codes:
        Store its codes; otherwise its features, which it has if the collection kept them, are encoded again.

    Raises
    ------
    OSError, InvalidInputError
        Files that are missing or do not fit each other, or no features.
    """
    manifest = Manifest.read(directory)
    if not codes and not manifest.features:
        raise InvalidInputError(f"{directory}: {NO_FEATURES}")
    files = None
    if codes:
        rows = {name: read_npy(manifest.code_file(directory, name)) for name in manifest.databases}
        present = read_npy(manifest.present_file(directory))
        for name, array in rows.items():
            if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != manifest.code_width:
                raise InvalidInputError(
                    f"{manifest.code_file(directory, name)}: expected shape (n, {manifest.code_width}) of uint8, got "
                    f"{array.shape} of {array.dtype}"
                )
        if present.dtype != np.bool_ or present.ndim != 2 or present.shape[1] != len(rows):
            raise InvalidInputError(
                f"{manifest.present_file(directory)}: expected shape (n, {len(rows)}) of bool, got {present.shape} of "
                f"{present.dtype}"
            )
        files = CodeFiles(manifest.model_checksum, present, rows)
    features = {name: read_npy(manifest.feature_file(directory, name)) for name in manifest.features}
    return ArraySource(features, items=manifest.items_file(directory), codes=files, indexes=manifest.indexes)
