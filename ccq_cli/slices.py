"""What `ccq index` reads: items in slices, from arrays or Parquet files, the same for both of its destinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ccq_cli.lines import check_payload
from ccq_core.errors import FeatureError, InvalidInputError
from ccq_core.features import check_array
from service.places import shorten
from service.records import Bools, Codes


@dataclass(frozen=True)
class Coded:
    """Codes of n items, and which they are: names of the `databases`, and the `checksum` of the model."""

    databases: tuple[str, ...]
    checksum: str
    codes: Codes


@dataclass(frozen=True)
class Slice:
    """n items of consecutive rows.

    Attributes
    ----------
    rows:
        (n,) numbers of their rows. Rows without features are left out.
    end:
        The row behind those that the slice was made from.
    ids, payloads:
        Of each; payloads as JSON.
    features:
        (n, P) numbers by modality, rows of NaN for absent ones.
    coded:
        Codes, where these are to be stored.
    """

    rows: NDArray[np.intp]
    end: int
    ids: Sequence[str]
    payloads: Sequence[bytes | None]
    features: Mapping[str, NDArray[Any]]
    coded: Coded | None

    def __len__(self) -> int:
        return len(self.rows)


class Source(Protocol):
    """Rows of files.

    Attributes
    ----------
    rows:
        How many.
    named:
        Whether they have ids, or their numbers are those.
    indexes:
        Keys of payloads that were indexed where they come from.
    """

    rows: int
    named: bool
    indexes: Sequence[str]

    def slices(self, size: int) -> Iterator[Slice]:
        """All items in order, from `size` rows at a time; InvalidInputError names the file and row of a fault."""

    def payload_fault(self, row: int, reason: str) -> InvalidInputError:
        """The error that something is wrong with the payload of a row."""

    def twice(self, first: int, row: int, item_id: str) -> InvalidInputError:
        """The error that two rows have the same id."""


def cut(
    first: int,
    ids: Sequence[str],
    payloads: Sequence[bytes | None],
    features: Mapping[str, NDArray[Any]],
    coded: Coded | None,
) -> Slice:
    """The slice of consecutive rows from `first` on, without those that have neither features nor codes.

    Raises
    ------
    FeatureError
        Features that are none; names the row.
    """
    present = np.zeros(len(ids), dtype=bool)
    for name, array in features.items():
        present |= _present(name, array, first)
    if coded is not None:  # what has features has codes
        present |= coded.codes.present.any(axis=1)
    if present.all():
        return Slice(np.arange(first, first + len(ids)), first + len(ids), ids, payloads, features, coded)
    kept = np.flatnonzero(present)
    if coded is not None:
        coded = Coded(coded.databases, coded.checksum, Codes(coded.codes.present[kept], coded.codes.rows[kept]))
    return Slice(
        first + kept,
        first + len(ids),
        [ids[i] for i in kept.tolist()],
        [payloads[i] for i in kept.tolist()],
        {name: array[kept] for name, array in features.items()},
        coded,
    )


def check_payloads(source: Source, part: Slice) -> None:
    """Refuse payloads that are no JSON objects; InvalidInputError names file and line."""
    for row, payload in zip(part.rows.tolist(), part.payloads, strict=True):
        reason = None if payload is None else check_payload(payload)
        if reason is not None:
            raise source.payload_fault(row, reason)


class Distinct:
    """Finds ids that come twice, in eight bytes of memory for each.

    Parameters
    ----------
    source:
        What is read. Where an id may have come before, which hashes tell, it is read again, to be sure.
    size:
        Rows that are read at a time.
    """

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        self._size = size
        self._sorted: list[NDArray[np.int64]] = []  # each at least twice as long as the next

    def check(self, part: Slice) -> None:
        """Take the next slice; InvalidInputError if one of its ids came before."""
        if not self._source.named:
            return
        hashes = np.fromiter(map(hash, part.ids), dtype=np.int64, count=len(part))
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        suspects = np.diff(hashes, prepend=hashes[:1] - 1) == 0
        for known in self._sorted:
            at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            suspects |= known[at] == hashes
        for i in np.sort(order[suspects]).tolist():
            self._refuse_known(part.ids[i], int(part.rows[i]))
        if len(part):
            self._sorted.append(hashes)
        while len(self._sorted) > 1 and len(self._sorted[-2]) < 2 * len(self._sorted[-1]):
            merged = np.concatenate([self._sorted.pop(), self._sorted.pop()])
            merged.sort(kind="stable")  # two sorted runs are merged
            self._sorted.append(merged)

    def _refuse_known(self, item_id: str, row: int) -> None:
        for part in self._source.slices(self._size):
            if item_id in part.ids:
                first = int(part.rows[part.ids.index(item_id)])
                if first < row:
                    raise self._source.twice(first, row, shorten(item_id))
                return


def _present(name: str, array: NDArray[Any], first: int) -> Bools:
    try:
        return check_array(name, array)[1]
    except FeatureError as error:
        raise FeatureError(name, error.reason, None if error.row is None else first + error.row) from None
