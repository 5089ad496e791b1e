"""Latent vectors in 16 bits a number, to rank few items by more exactly than by their codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ccq_core import _native, simd
from ccq_core.features import Float32
from ccq_core.scan import Keys

_MOST = 32767
_LANES = 8


@dataclass(frozen=True)
class Latents:
    """Latent vectors (n, D). A number is wrong by at most 1/65534 of the largest of its vector.

    Attributes
    ----------
    numbers:
        (n, D) int16: parts of the scale, from -32767 to 32767.
    scales:
        (n,) float32.
    """

    numbers: NDArray[np.int16]
    scales: Float32

    @classmethod
    def of(cls, z: Float32) -> Self:
        """Some latent vectors (n, D), rounded."""
        scales = np.abs(z).max(axis=1, initial=0.0).astype(np.float32) / np.float32(_MOST)
        parts = np.divide(z, scales[:, None], out=np.zeros_like(z), where=scales[:, None] > 0)
        return cls(np.clip(np.rint(parts), -_MOST, _MOST).astype(np.int16), scales)

    @classmethod
    def empty(cls, n: int, dim: int) -> Self:
        """Room for so many. Memory that is never written to is not taken."""
        return cls(np.zeros((n, dim), dtype=np.int16), np.zeros(n, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.scales)

    @property
    def nbytes(self) -> int:
        """What they take."""
        return self.numbers.nbytes + self.scales.nbytes

    def keys(self, rows: NDArray[np.int64], point: NDArray[np.float64], metric: str) -> Keys:
        """Keys (k,) float64 to rank some rows (k,) by: the same at every SIMD level, whatever the other rows.

        Parameters
        ----------
        point:
            (D,), a query's latent vector.
        metric:
            ``euclidean``: keys are squared distances. ``cosine``: negated cosines, 0 for a vector of zeros.
        """
        level = simd.get_level()
        if level == simd.NUMPY:
            return self._reference(rows, point, metric)
        return _native.vector_keys(self.numbers, self.scales, rows, point, metric == "cosine", level)

    def _reference(self, rows: NDArray[np.int64], point: NDArray[np.float64], metric: str) -> Keys:
        z = self.numbers[rows].astype(np.float64)
        if metric != "cosine":
            return _summed(np.square(z * self.scales[rows, None] - point))
        lengths = np.sqrt(_summed(z * z)) * np.sqrt(_summed(point[None] * point))
        return np.asarray(-np.divide(_summed(z * point), lengths, out=np.zeros(len(z)), where=lengths > 0))


def _summed(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of rows in the order of the kernels."""
    lane = np.zeros((_LANES, len(x)))
    for d, column in enumerate(x.T):
        lane[d % _LANES] += column
    return np.asarray(((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])))
