"""Preprocessing of one modality by training statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError

Float64 = NDArray[np.float64]

STEPS = ("center", "zscore", "zca")
# Of the mean eigenvalue. Enough for rows that sum to one; directions that carry data are white to within a percent.
_ZCA_RIDGE = 1e-3


@dataclass(frozen=True)
class Standardizer:
    """x -> (x - mean) @ matrix.

    Attributes
    ----------
    mean:
        (P,).
    matrix:
        (P, P).
    """

    mean: Float64
    matrix: Float64

    def __call__(self, x: NDArray[np.float32]) -> Float64:
        """Features (n, P) to (n, P) float64."""
        return np.asarray((x.astype(np.float64) - self.mean) @ self.matrix)


def fit_standardizer(step: str, x: NDArray[np.float32]) -> Standardizer:
    """Fit `step` on training features (n, P).

    ``center`` subtracts the mean; ``zscore`` also divides each dimension by its standard deviation, and makes a
    constant one zero; ``zca`` also decorrelates them, with as little rotation as possible.
    """
    if step not in STEPS:
        raise InvalidInputError(f"preprocess: expected one of {', '.join(STEPS)}, got {step!r}")
    wide = x.astype(np.float64)
    mean = wide.mean(axis=0)
    if step == "center":
        return Standardizer(mean, np.eye(x.shape[1]))
    centred = wide - mean
    deviation = centred.std(axis=0)
    if step == "zscore":
        # A dimension that only carries the rounding of its mean is constant.
        varies = deviation > 1e-6 * np.abs(mean)
        return Standardizer(mean, np.diag(np.where(varies, 1 / np.where(varies, deviation, 1), 0)))
    values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
    values = np.maximum(values, 0)
    raised = values + _ZCA_RIDGE * values.mean()
    scale = np.where(raised > 0, 1 / np.sqrt(np.where(raised > 0, raised, 1)), 0)
    return Standardizer(mean, (vectors * scale) @ vectors.T)
