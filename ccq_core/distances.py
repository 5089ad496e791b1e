"""Asymmetric quantizer distance (AQD, Eqn. 5): the look-up tables of queries, and what their sums mean.

A search ranks by a *key*, lower is better, that is a sum of table entries of one item's bytes:

- ``euclidean``: key = sum_m T_m[b_m] + N[norm byte] with T_m = -2 <z, C_m>, N = |y|^2; distance = |z|^2 + key, which
  is |z - y|^2 with the quantized norm. (The part of Eqn. 5 outside the latent space concerns the query alone and is
  left out.)
- ``cosine``: key = (sum_m T_m[b_m]) * N[norm byte] with T_m = -<z, C_m> / |z|, N = 1 / |y|; distance = 1 + key, which
  is 1 - cos(z, y) with the quantized norm.

Without a norm byte (`CCQ(norm="none")`) codes are of directions, whose reconstructions have a length of nearly one:

- ``cosine``: key = sum_m T_m[b_m] with T_m as above; distance = 1 + key.

Sums run over m = 0, 1, ... in float64 on float32 entries. Keys decide the order, so an item's rank never depends on the
rounding of its distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ccq_core import _native, simd
from ccq_core.errors import InvalidInputError
from ccq_core.features import Float32
from ccq_core.memory import aligned_empty
from ccq_core.quantizer import K

Metric = Literal["cosine", "euclidean"]
METRICS: tuple[str, ...] = get_args(Metric)
_BLOCK = 64


@dataclass(frozen=True)
class DistanceTables:
    """Look-up tables of q queries.

    Attributes
    ----------
    metric:
        ``cosine`` or ``euclidean``.
    planes:
        All look-ups of a row, (q, P, 256) float32, by query, byte of the row and value of the byte. The first M
        planes are T, and the last is N, the same for every query.
    square_norm:
        |z|^2 of each query, (q,) float64.
    norms:
        Whether there is an N; if not, P = M.
    """

    metric: Metric
    planes: Float32
    square_norm: NDArray[np.float64]
    norms: bool = True

    def __len__(self) -> int:
        return len(self.planes)

    def __getitem__(self, queries: slice) -> DistanceTables:
        """The tables of some of the queries."""
        return DistanceTables(self.metric, self.planes[queries], self.square_norm[queries], self.norms)

    def distances(self, keys: NDArray[np.float64]) -> Float32:
        """Distances (q, k) float32 of keys (q, k) float64: squared Euclidean, or 1 - cosine."""
        return self.distances_of(keys.ravel(), np.repeat(np.arange(len(keys)), keys.shape[1])).reshape(keys.shape)

    def distances_of(self, keys: NDArray[np.float64], queries: NDArray[np.intp]) -> Float32:
        """Distances (n,) float32 of keys (n,) float64, each of the query with that number."""
        # The quantized norm, or one taken for 1, can take a distance a little out of its range.
        if self.metric == "cosine":
            return np.clip(1.0 + keys, 0.0, 2.0).astype(np.float32)
        return np.maximum(self.square_norm[queries] + keys, 0.0).astype(np.float32)


def check_metric(metric: str) -> Metric:
    """The metric, or InvalidInputError naming those that exist."""
    if metric not in METRICS:
        raise InvalidInputError(f"metric: expected {' or '.join(METRICS)}, got {metric!r}")
    return metric  # type: ignore[return-value]


class TableMaker:
    """Makes look-up tables.

    Parameters
    ----------
    codebooks:
        (M, 256, D) float32.
    norm_levels:
        (256,) float32, squared norms; None where rows have no norm byte.
    """

    def __init__(self, codebooks: Float32, norm_levels: Float32 | None) -> None:
        m, k, dim = codebooks.shape
        # By blocks of 64 codewords, so that each of 64 sums can have its own place in vectors, however long these are.
        self._blocks = aligned_empty((m * k // _BLOCK, dim, _BLOCK), np.float32)
        self._blocks[:] = codebooks.reshape(-1, _BLOCK, dim).transpose(0, 2, 1)
        self._norms: dict[str, Float32] = {}
        if norm_levels is not None:
            self._norms = {"euclidean": norm_levels, "cosine": _inverse_lengths(norm_levels)}

    def __call__(self, z: Float32, metric: Metric) -> DistanceTables:
        """Tables of latent queries z (q, D) float32.

        Raises
        ------
        InvalidInputError
            Euclidean distances without norms.
        """
        self.check(metric)
        level = simd.get_level()
        if level == simd.NUMPY:
            return self.reference(z, metric)
        cosine = metric == "cosine"
        planes, square_norm = _native.distance_tables(
            self._blocks, self._norms.get(metric), np.ascontiguousarray(z, np.float32), cosine, level
        )
        return DistanceTables(metric, planes, square_norm, bool(self._norms))

    def check(self, metric: Metric) -> None:
        """InvalidInputError unless there can be tables for this metric."""
        if not self._norms and metric != "cosine":
            raise InvalidInputError(
                f"metric: this model stores no norms (norm='none'), so cosine it is, got {metric!r}"
            )

    def reference(self, z: Float32, metric: Metric) -> DistanceTables:
        """The same in NumPy."""
        square_norm = np.zeros(len(z))
        for column in z.T.astype(np.float64):
            square_norm += column * column
        if metric == "cosine":
            length = np.where(square_norm > 0, np.sqrt(square_norm), 1.0)
            left = (z / -length[:, None]).astype(np.float32)
        else:
            left = z * np.float32(-2.0)
        count, dim, _ = self._blocks.shape
        inner = np.zeros((len(z), count, _BLOCK), np.float32)
        for d in range(dim):
            inner += left[:, d, None, None] * self._blocks[:, d]
        m = count * _BLOCK // K
        planes = np.empty((len(z), m + bool(self._norms), K), np.float32)
        planes[:, :m] = inner.reshape(len(z), m, K)
        if self._norms:
            planes[:, -1] = self._norms[metric]
        return DistanceTables(metric, planes, square_norm, bool(self._norms))


def _inverse_lengths(norm_levels: Float32) -> Float32:
    # A reconstruction of length zero points nowhere: its cosine with anything counts as 0.
    positive = norm_levels > 0
    return np.where(positive, 1.0 / np.sqrt(np.where(positive, norm_levels, 1.0)), 0.0).astype(np.float32)
