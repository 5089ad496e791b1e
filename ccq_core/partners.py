"""Retrieval quality without labels: how far ahead an object's other modality is found, among those of other objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.distances import Metric
from ccq_core.features import FeatureSet, Float32
from ccq_core.model import CCQ
from ccq_core.scan import Keys, scan

DEPTHS = (1, 10, 100)
_QUERIES = 256  # that are looked at together
Ranks = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """Where partners were found.

    Attributes
    ----------
    recall:
        By depth k: the share of queries whose partner is among the first k.
    mean_rank:
        Mean place of the partner; 1 is the best.
    """

    recall: dict[int, float]
    mean_rank: float

    @classmethod
    def of(cls, ranks: Ranks) -> Found:
        """What ranks (n,) come to."""
        return cls({k: float(np.mean(ranks <= k)) for k in DEPTHS}, float(ranks.mean()))

    def plain(self) -> dict[str, float]:
        """As JSON values."""
        return {**{f"recall_at_{k}": share for k, share in self.recall.items()}, "mean_rank": self.mean_rank}


@dataclass(frozen=True)
class Direction:
    """How well the objects of one modality are found by another.

    Attributes
    ----------
    query, database:
        Modalities.
    objects:
        How many objects have both: as many queries, and as many items.
    codes, floats:
        By the codes of the items, and by their latent vectors: what lies between them is what the codes cost.
    """

    query: str
    database: str
    objects: int
    codes: Found
    floats: Found

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "query": self.query,
            "database": self.database,
            "objects": self.objects,
            "codes": self.codes.plain(),
            "floats": self.floats.plain(),
        }


def find_partners(
    model: CCQ,
    features: FeatureSet,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    *,
    metric: Metric | None = None,
) -> Iterator[Direction]:
    """Search with each object in one modality for itself in another, for each ordered pair of modalities.

    Items that are as near as the partner are taken to come before it half of the time.

    Parameters
    ----------
    model:
        Fitted, on other objects if its quality on new ones is to be told.
    features:
        Objects in its modalities. Those that have both of a pair take part; a pair that none has is left out.
    progress:
        Called now and then with how many queries are done, and of all.
    metric:
        Ranking; the model's own by default.
    """
    rows = {
        (a, b): np.flatnonzero(features.present[a] & features.present[b]) for a, b in permutations(features.arrays, 2)
    }
    total = sum(len(found) for found in rows.values())
    done = 0
    for (a, b), both in rows.items():
        if not both.size:
            continue
        queries = model.project({a: features.arrays[a][both]})
        items = model.project({b: features.arrays[b][both]})
        codes = model.encode_latent(items)
        ranks, exact = np.empty((2, len(both)))
        for lo in range(0, len(both), _QUERIES):
            some = slice(lo, lo + _QUERIES)
            tables = model.distance_tables_latent(queries[some], metric=metric)
            by_codes = np.stack([scan(tables, query, codes) for query in range(len(tables))])
            ranks[some] = _ranks(by_codes, lo)
            exact[some] = _ranks(float_keys(queries[some], items, metric or model.metric), lo)
            done += len(tables)
            progress(done, total)
        yield Direction(a, b, len(both), Found.of(ranks), Found.of(exact))


def _ranks(keys: Keys, first: int) -> Ranks:
    """Places (q,) of the partners, which are items `first` and on; keys (q, n), lower is nearer."""
    own = keys[np.arange(len(keys)), first + np.arange(len(keys))][:, None]
    return np.asarray(1 + (keys < own).sum(axis=1) + ((keys == own).sum(axis=1) - 1) / 2)


def float_keys(queries: Float32, items: Float32, metric: str) -> Keys:
    """Keys (q, n) float64 of vectors (n, D) for vectors (q, D), to rank them by: lower is nearer."""
    q, z = queries.astype(np.float64), items.astype(np.float64)
    squares = np.square(z).sum(axis=1)
    if metric == "cosine":
        lengths = np.sqrt(squares)
        return np.asarray(-(q @ z.T) / np.where(lengths > 0, lengths, 1.0))
    return np.asarray(squares - 2 * (q @ z.T))
