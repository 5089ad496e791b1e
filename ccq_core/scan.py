"""The exact AQD scan: compiled, and in plain NumPy as what every kernel has to agree with, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccq_core import _native, simd
from ccq_core.distances import DistanceTables
from ccq_core.quantizer import Codes

Keys = NDArray[np.float64]
Labels = NDArray[np.int64]
GROUP = 64


@dataclass(frozen=True)
class Segment:
    """A run of code rows.

    Attributes
    ----------
    codes:
        (groups, P, 64) uint8: row 64 g + j has the bytes codes[g, :, j], P - 1 codes and the norm byte.
    rows:
        How many rows count; bytes behind them are never looked at.
    mask:
        (groups,) uint64, bit j of word g for row 64 g + j; only rows whose bit is set take part. None: all do.
    first:
        Label of the first row.
    offsets:
        Labels minus `first`, ascending, (rows or more,) uint32. None: labels are consecutive, which costs nothing.
    """

    codes: NDArray[np.uint8]
    rows: int
    mask: NDArray[np.uint64] | None = None
    first: int = 0
    offsets: NDArray[np.uint32] | None = None

    def selected(self) -> NDArray[np.bool_]:
        """Which rows take part, (rows,) bool."""
        if self.mask is None:
            return np.ones(self.rows, dtype=bool)
        return np.unpackbits(self.mask.view(np.uint8), bitorder="little")[: self.rows].astype(bool)

    def labels(self, rows: NDArray[np.int64]) -> Labels:
        """Labels of some rows."""
        return self.first + (rows if self.offsets is None else self.offsets[rows].astype(np.int64))


@dataclass(frozen=True)
class Rows:
    """What a search goes through.

    Attributes
    ----------
    segments:
        Labels ascend through all of them.
    live:
        How many rows take part.
    planes:
        P, bytes per row.
    used:
        (P, 256) bool: the bytes that may occur in each plane; None: any. Tables of bytes that never occur do not loosen
        the bounds then.
    """

    segments: Sequence[Segment]
    live: int
    planes: int
    used: NDArray[np.bool_] | None = None

    @cached_property
    def native(self) -> _native.Rows:
        """The same for the kernels, made once."""
        parts = [(s.codes, s.rows, s.mask, s.first, s.offsets) for s in self.segments]
        return _native.Rows(parts, self.planes, self.live, None if self.used is None else self.used.view(np.uint8))


def search(rows: Rows, tables: DistanceTables, k: int, only: Labels | None = None) -> list[tuple[Labels, Keys]]:
    """The k best rows of each query, by the kernels in force (see `ccq_core.simd`).

    Parameters
    ----------
    rows:
        What to go through.
    tables:
        Look-up tables of q queries.
    k:
        How many rows; fewer where fewer take part.
    only:
        Ascending labels: no other rows take part. Each is looked up by itself, so they should be few.

    Returns
    -------
    For each query labels (<= k,) int64 and keys float64; best first, ties by label.
    """
    level = simd.get_level()
    if level == simd.NUMPY:
        return reference_search(rows, tables, k, only)
    cosine = tables.metric == "cosine"
    labels, keys, counts = _native.search(
        rows.native, tables.planes, cosine, k, simd.get_threads(), level, norms=tables.norms, only=only
    )
    return [(labels[q, :n], keys[q, :n]) for q, n in enumerate(counts)]


def reference_search(
    rows: Rows, tables: DistanceTables, k: int, only: Labels | None = None
) -> list[tuple[Labels, Keys]]:
    """What `search` returns, in NumPy."""
    found: list[list[tuple[Labels, Keys]]] = [[] for _ in range(len(tables))]
    for segment in rows.segments:
        codes = rows_of(segment.codes, segment.rows)
        selected = np.flatnonzero(segment.selected())
        if only is not None:
            selected = selected[np.isin(segment.labels(selected), only, assume_unique=True)]
        for query, best in enumerate(found):
            keys = scan(tables, query, codes[selected])
            top = top_k(keys, k)
            best.append((segment.labels(selected[top]), keys[top]))
    return [_merge(best, k) for best in found]


def scan(tables: DistanceTables, query: int, codes: Codes) -> Keys:
    """Keys (n,) float64 of one query for every row of codes (n, P) uint8: M codes, a norm byte if there is one."""
    planes = tables.planes[query]
    total = np.zeros(len(codes))
    for m in range(len(planes) - 1):
        total += planes[m][codes[:, m]]
    last = planes[-1][codes[:, -1]]
    if tables.metric == "cosine" and tables.norms:
        total *= last
    else:
        total += last
    return total


def top_k(keys: Keys, k: int) -> NDArray[np.intp]:
    """Positions of the k smallest keys, ascending, equal keys by position; all of them where there are fewer."""
    if k >= len(keys):
        return np.argsort(keys, kind="stable")
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    bound = np.partition(keys, k - 1)[k - 1]
    candidates = np.flatnonzero(keys <= bound)
    return candidates[np.argsort(keys[candidates], kind="stable")][:k]


def rows_of(codes: NDArray[np.uint8], n: int) -> Codes:
    """The first n rows (n, P) of codes in groups (groups, P, 64); a copy."""
    groups, planes, _ = codes.shape
    return codes.transpose(0, 2, 1).reshape(groups * GROUP, planes)[:n].copy()


def _merge(found: list[tuple[Labels, Keys]], k: int) -> tuple[Labels, Keys]:
    if not found:
        return np.empty(0, np.int64), np.empty(0)
    labels = np.concatenate([part[0] for part in found])
    keys = np.concatenate([part[1] for part in found])
    top = top_k(keys, k)
    return labels[top], keys[top]
