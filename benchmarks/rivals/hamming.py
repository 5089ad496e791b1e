"""Exact ranking by Hamming distance. Needs NumPy 2.

Short codes tie often: with 8 bits, 2,000 objects share nine distances. Ties are broken by row number, so a ranking is
reproducible, and a score depends on the order of the database. That is fair as long as the order tells nothing about
labels; the rows of Wiki are in random order. There, ten random orders (`python -m benchmarks.rivals --shuffle`) change
the mean MAP@50 of CVH, SCM and QCH by at most .009 at 8 bits and .005 at 32; single orders of SCM-seq have a standard
deviation of up to .009 and .004.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES = 32 << 20  # of distances at a time


def hamming_search(
    queries: NDArray[np.uint8], database: NDArray[np.uint8], r: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The r nearest codes of each query.

    Parameters
    ----------
    queries:
        (q, B) packed bits.
    database:
        (n, B) packed bits.
    r:
        Results per query; all n where n is smaller.

    Returns
    -------
    Row numbers (q, min(r, n)) int64, nearest first, equal distances by row number; and their distances, int64.
    """
    if queries.ndim != 2 or database.ndim != 2 or queries.shape[1] != database.shape[1]:
        raise ValueError(f"expected codes (q, B) and (n, B), got {queries.shape} and {database.shape}")
    if r < 1:
        raise ValueError(f"r: expected at least 1, got {r}")
    n = len(database)
    keep = min(r, n)
    ids = np.empty((len(queries), keep), dtype=np.int64)
    distances = np.empty_like(ids)
    left, right = _words(queries), _words(database)
    rows = np.arange(n, dtype=np.int64)
    block = max(1, _BLOCK_BYTES // (8 * max(n, 1)))
    for start in range(0, len(queries), block):
        part = left[start : start + block]
        # One number that sorts by distance, then by row.
        keys = np.zeros((len(part), n), dtype=np.int64)
        for word in range(left.shape[1]):
            keys += np.bitwise_count(part[:, word, None] ^ right[None, :, word])
        keys *= n
        keys += rows
        if keep < n:
            keys = np.partition(keys, keep - 1, axis=1)[:, :keep]
        keys.sort(axis=1)
        distances[start : start + block], ids[start : start + block] = np.divmod(keys, max(n, 1))
    return ids, distances


def _words(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """The same bits in the widest words that their number of bytes allows."""
    width = next(size for size in (8, 4, 2, 1) if codes.shape[1] % size == 0)
    return np.ascontiguousarray(codes).view(f"u{width}")
