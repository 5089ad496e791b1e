"""The exact AQD scan: compiled, and in plain NumPy as what every kernel has to agree with, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccq_core import _native, simd
from ccq_core.distances import DistanceTables
from ccq_core.quantizer import Codes

Keys = NDArray[np.float64]
Positions = NDArray[np.int64]
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
    """

    codes: NDArray[np.uint8]
    rows: int
    mask: NDArray[np.uint64] | None = None

    def selected(self) -> NDArray[np.bool_]:
        """Which rows take part, (rows,) bool."""
        if self.mask is None:
            return np.ones(self.rows, dtype=bool)
        return np.unpackbits(self.mask.view(np.uint8), bitorder="little")[: self.rows].astype(bool)


def search(
    segments: Sequence[Segment],
    tables: DistanceTables,
    k: int,
    rows: int,
    used: NDArray[np.bool_] | None = None,
) -> list[tuple[Positions, Keys]]:
    """The k best rows of each query over all segments, by the kernels in force (see `ccq_core.simd`).

    Parameters
    ----------
    rows:
        How many rows take part, over all segments.
    used:
        (P, 256) bool: the bytes that may occur in each plane; None: any. Tables of bytes that never occur do not loosen
        the bounds then.

    Returns
    -------
    For each query positions (<= k,) int64, counted through all segments, and keys float64; best first, ties by
    position.
    """
    level = simd.get_level()
    if level == simd.NUMPY:
        return reference_search(segments, tables, k)
    parts = [(s.codes, s.rows, s.mask) for s in segments]
    cosine = tables.metric == "cosine"
    flags = None if used is None else used.view(np.uint8)
    positions, keys, counts = _native.search(parts, tables.planes(), flags, cosine, k, rows, simd.get_threads(), level)
    return [(positions[q, :n], keys[q, :n]) for q, n in enumerate(counts.tolist())]


def reference_search(segments: Sequence[Segment], tables: DistanceTables, k: int) -> list[tuple[Positions, Keys]]:
    """What `search` returns, in NumPy."""
    starts = np.concatenate([[0], np.cumsum([s.rows for s in segments], dtype=np.int64)])
    found: list[list[tuple[Positions, Keys]]] = [[] for _ in range(len(tables))]
    for segment, start in zip(segments, starts, strict=False):
        codes = rows_of(segment.codes, segment.rows)
        positions = np.flatnonzero(segment.selected())
        for query, best in enumerate(found):
            keys = scan(tables, query, codes[positions])
            top = top_k(keys, k)
            best.append((start + positions[top], keys[top]))
    return [_merge(best, k) for best in found]


def scan(tables: DistanceTables, query: int, codes: Codes) -> Keys:
    """Keys (n,) float64 of one query for every row of codes (n, M + 1) uint8: M codes and the norm byte."""
    total = np.zeros(len(codes))
    inner = tables.inner[query]
    for m in range(len(inner)):
        total += inner[m][codes[:, m]]
    norm = tables.norm[codes[:, -1]]
    if tables.metric == "cosine":
        return -(total * norm)
    return total + norm


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


def _merge(found: list[tuple[Positions, Keys]], k: int) -> tuple[Positions, Keys]:
    if not found:
        return np.empty(0, np.int64), np.empty(0)
    positions = np.concatenate([part[0] for part in found])
    keys = np.concatenate([part[1] for part in found])
    top = top_k(keys, k)
    return positions[top], keys[top]
