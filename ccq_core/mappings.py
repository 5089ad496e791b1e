"""Linear maps R^v from features to the latent space."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ccq_core.features import Float32

Float64 = NDArray[np.float64]


def procrustes(cross: Float64) -> Float32:
    """The orthonormal map that best turns features into targets, Eqn. 7 of the paper.

    Parameters
    ----------
    cross:
        (P, D) = sum_n x_n y_n^T, D <= P.

    Returns
    -------
    R (P, D) float32, R^T R = I, minimising sum_n |x_n - R y_n|^2: U V^T of the thin SVD of `cross`.
    """
    u, _, vt = scipy.linalg.svd(cross, full_matrices=False, check_finite=False)
    return (u @ vt).astype(np.float32)


def ridge(gram: Float64, cross: Float64, strength: float) -> Float32:
    """Ridge regression of targets on features, from sums.

    Parameters
    ----------
    gram:
        (P, P) = sum_n x_n x_n^T.
    cross:
        (P, D) = sum_n x_n y_n^T.
    strength:
        The penalty in units of the mean eigenvalue of `gram`.

    Returns
    -------
    W (P, D) float32 minimising sum_n |y_n - W^T x_n|^2 + strength * tr(gram)/P * |W|^2.
    """
    p = len(gram)
    level = strength * np.trace(gram) / p
    if level <= 0:  # features that are all zero carry nothing to regress on
        return np.zeros(cross.shape, dtype=np.float32)
    return scipy.linalg.solve(gram + level * np.eye(p), cross, assume_a="pos", check_finite=False).astype(np.float32)
