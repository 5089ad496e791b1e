"""The exact AQD scan in plain NumPy: what every faster kernel has to agree with, bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccq_core.distances import DistanceTables
from ccq_core.quantizer import Codes

Keys = NDArray[np.float64]


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
