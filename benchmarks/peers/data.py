"""What every contestant holds and is asked: made from a seed, with the exact answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DIM = 128
GROUPS = 1000
"""Items are in one of so many groups, so a filter on one group leaves 0.1 % of them."""
NEIGHBOURS = 10
_ITEMS_A_CLUSTER = 200
_FALL = 0.5
_SPREAD = 0.8
_PERTURBATION = 0.5
_BLOCK = 1 << 16

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Items, queries, and what exact search finds for them.

    Attributes
    ----------
    items:
        (n, DIM) float32; the id of an item is the number of its row.
    groups:
        (n,) int64 from 0 to GROUPS - 1, for the filter.
    queries:
        (q, DIM) float32.
    wanted:
        (q,) int64: the group that a query is filtered by, where it is; that of the item it was made from.
    nearest:
        (q, k) int64: the k items of the largest cosines with each query, best first, by float32 products; k is 10, or n
        where that is less.
    nearest_in_group:
        q arrays of at most 10 int64: the same among the items of the wanted group.
    """

    items: Float32
    groups: Int64
    queries: Float32
    wanted: Int64
    nearest: Int64
    nearest_in_group: list[Int64]


def make(n: int, queries: int, seed: int) -> Dataset:
    """A mixture of Gaussians, and queries that are perturbed items.

    One cluster for each 200 items, its centre drawn from a Gaussian; items lie about their centre with `_SPREAD` of the
    centres' standard deviation. The j-th of the 128 principal axes, from 1, has a standard deviation of j^-`_FALL`, as
    features of encoders have few strong directions and many weak ones; a random rotation mixes the axes. A query is
    an item plus `_PERTURBATION` times such a deviation from a centre.

    Raises
    ------
    ValueError
        Fewer than one item or query.
    """
    if n < 1 or queries < 1:
        raise ValueError(f"expected at least one item and one query, got {n} and {queries}")
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.standard_normal((DIM, DIM)))
    axes = (np.arange(1, DIM + 1)[:, None] ** -_FALL * rotation).astype(np.float32)
    centres = rng.standard_normal((-(-n // _ITEMS_A_CLUSTER), DIM), dtype=np.float32) @ axes
    items = np.empty((n, DIM), dtype=np.float32)
    for lo in range(0, n, _BLOCK):
        block = items[lo : lo + _BLOCK]
        noise = rng.standard_normal(block.shape, dtype=np.float32) @ axes
        block[:] = centres[rng.integers(len(centres), size=len(block))] + _SPREAD * noise
    groups = rng.integers(GROUPS, size=n)
    origins = rng.integers(n, size=queries)
    noise = rng.standard_normal((queries, DIM), dtype=np.float32) @ axes
    asked = items[origins] + _SPREAD * _PERTURBATION * noise
    wanted = groups[origins]
    return Dataset(items, groups, asked, wanted, exact(items, asked), _in_group(items, groups, asked, wanted))


def exact(items: Float32, queries: Float32, k: int = NEIGHBOURS) -> Int64:
    """Rows (q, min(k, n)) of the items with the largest cosines, best first; of equal ones the lower row."""
    asked = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    for lo in range(0, len(items), _BLOCK):
        block = items[lo : lo + _BLOCK]
        found = asked @ (block / np.linalg.norm(block, axis=1, keepdims=True)).T
        kept = min(k, len(block))
        best = np.argpartition(found, len(block) - kept, axis=1)[:, len(block) - kept :]
        scores = np.concatenate([scores, np.take_along_axis(found, best, axis=1)], axis=1)
        rows = np.concatenate([rows, best + lo], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    nearest: Int64 = np.take_along_axis(rows, order, axis=1)
    return nearest


def _in_group(items: Float32, groups: Int64, queries: Float32, wanted: Int64) -> list[Int64]:
    found: list[Int64] = [np.empty(0, dtype=np.int64)] * len(queries)
    for group in np.unique(wanted):
        members, askers = np.flatnonzero(groups == group), np.flatnonzero(wanted == group)
        for asker, nearest in zip(askers, exact(items[members], queries[askers]), strict=True):
            found[asker] = members[nearest]
    return found


def recall(found: list[list[int]], wanted: list[Int64] | Int64) -> float:
    """The share of the wanted items that were found, over all queries."""
    hits = sum(len(set(ids) & set(nearest.tolist())) for ids, nearest in zip(found, wanted, strict=True))
    return hits / sum(map(len, wanted))
