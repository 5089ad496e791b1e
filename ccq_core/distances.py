"""Asymmetric quantizer distance (AQD, Eqn. 5): the look-up tables of queries, and what their sums mean.

A search ranks by a *key*, lower is better, that is a sum of table entries of one item's bytes:

- ``euclidean``: key = sum_m T_m[b_m] + N[norm byte] with T_m = -2 <z, C_m>, N = |y|^2; distance = |z|^2 + key, which
  is |z - y|^2 with the quantized norm. (The part of Eqn. 5 outside the latent space concerns the query alone and is
  left out.)
- ``cosine``: key = -(sum_m T_m[b_m]) * N[norm byte] with T_m = <z, C_m> / |z|, N = 1 / |y|; distance = 1 + key, which
  is 1 - cos(z, y) with the quantized norm.

Sums run over m = 0, 1, ... in float64 on float32 entries. Keys decide the order, so an item's rank never depends on the
rounding of its distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError
from ccq_core.features import Float32
from ccq_core.memory import aligned_empty

Metric = Literal["cosine", "euclidean"]
METRICS: tuple[str, ...] = get_args(Metric)


@dataclass(frozen=True)
class DistanceTables:
    """Look-up tables of q queries.

    Attributes
    ----------
    metric:
        ``cosine`` or ``euclidean``.
    inner:
        T, (q, M, 256) float32, by query, codebook and code.
    norm:
        N, (256,) float32, by norm byte; the same for every query.
    square_norm:
        |z|^2 of each query, (q,) float64.
    """

    metric: Metric
    inner: Float32
    norm: Float32
    square_norm: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.inner)

    def planes(self) -> Float32:
        """All look-ups of a row in one array (q, M + 1, 256), for the kernels.

        The first M planes are T, negated for cosine, and the last is N: then a key is the sum of all, or for cosine the
        sum of the first M times the last.
        """
        out = aligned_empty((len(self), self.inner.shape[1] + 1, self.inner.shape[2]), np.float32)
        out[:, :-1] = -self.inner if self.metric == "cosine" else self.inner
        out[:, -1] = self.norm
        return out

    def distances(self, keys: NDArray[np.float64]) -> Float32:
        """Distances (q, k) float32 of keys (q, k) float64: squared Euclidean, or 1 - cosine."""
        # The quantized norm can take a distance a little out of its range.
        if self.metric == "cosine":
            return np.clip(1.0 + keys, 0.0, 2.0).astype(np.float32)
        return np.maximum(self.square_norm[:, None] + keys, 0.0).astype(np.float32)


def check_metric(metric: str) -> Metric:
    """The metric, or InvalidInputError naming those that exist."""
    if metric not in METRICS:
        raise InvalidInputError(f"metric: expected {' or '.join(METRICS)}, got {metric!r}")
    return metric  # type: ignore[return-value]


def distance_tables(codebooks: Float32, norm_levels: Float32, z: Float32, metric: Metric) -> DistanceTables:
    """Tables for latent queries z (q, D) float32, codebooks (M, 256, D) and squared-norm levels (256,)."""
    m, k, dim = codebooks.shape
    flat = codebooks.reshape(m * k, dim)
    square_norm = np.einsum("qd,qd->q", z, z, dtype=np.float64)
    if metric == "euclidean":
        inner = (-2.0 * (z @ flat.T)).reshape(len(z), m, k)
        return DistanceTables(metric, inner, norm_levels, square_norm)
    length = np.sqrt(square_norm)[:, None]
    direction = (z / np.where(length > 0, length, 1.0)).astype(np.float32)
    # A reconstruction of length zero points nowhere: its cosine with anything counts as 0.
    positive = norm_levels > 0
    norm = np.where(positive, 1.0 / np.sqrt(np.where(positive, norm_levels, 1.0)), 0.0).astype(np.float32)
    return DistanceTables(metric, (direction @ flat.T).reshape(len(z), m, k), norm, square_norm)
