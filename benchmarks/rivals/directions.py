"""Linear algebra that several rivals share."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from benchmarks.rivals.base import Views
from benchmarks.rivals.standardize import Float64


def covariance(x: Float64, ridge: float) -> Float64:
    """X^T X / n + ridge * tr / P * I, positive definite for any ridge above zero; x (n, P) is centred."""
    matrix = x.T @ x / len(x)
    scale = float(np.trace(matrix)) / len(matrix)
    return np.asarray(matrix + (ridge * scale if scale > 0 else 1.0) * np.eye(len(matrix)))


def inverse_root(matrix: Float64) -> Float64:
    """The symmetric inverse square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def canonical(cross: Float64, first: Float64, second: Float64) -> tuple[Float64, Float64, Float64]:
    """Solve max tr(A^T C B) subject to A^T C_1 A = B^T C_2 B = I.

    Parameters
    ----------
    cross:
        C, (P_1, P_2).
    first, second:
        C_1 (P_1, P_1) and C_2 (P_2, P_2), positive definite.

    Returns
    -------
    A (P_1, d), B (P_2, d) and the values of a_i^T C b_i (d,), descending; d = min(P_1, P_2). The stacked columns
    (a_i, b_i) solve the generalized eigenproblem [[0, C], [C^T, 0]] w = value * diag(C_1, C_2) w.
    """
    left, right = inverse_root(first), inverse_root(second)
    u, values, vt = scipy.linalg.svd(left @ cross @ right, full_matrices=False)
    return left @ u, right @ vt.T, values


def fill_bits(weights: Views, values: Float64, bits: int, rng: np.random.Generator) -> Views:
    """Directions for as many bits as asked for, where a method yields fewer of use.

    The first d bits are the directions themselves. Every further block of d is a random rotation of them, the same in
    both modalities, each direction weighed by its value: new hyperplanes in the space that the method found.

    Parameters
    ----------
    weights:
        A (P_1, d) and B (P_2, d).
    values:
        Weight of each direction, (d,).
    bits:
        Columns wanted.

    Returns
    -------
    (P_1, bits) and (P_2, bits).
    """
    dims = weights[0].shape[1]
    mix = [np.eye(dims)]
    while sum(block.shape[1] for block in mix) < bits:
        mix.append(values[:, None] * random_rotation(dims, rng))
    whole = np.hstack(mix)[:, :bits]
    return weights[0] @ whole, weights[1] @ whole


def random_rotation(dims: int, rng: np.random.Generator) -> Float64:
    """An orthogonal matrix (dims, dims), uniform up to signs."""
    return np.asarray(np.linalg.qr(rng.standard_normal((dims, dims)))[0])


def polar(matrix: Float64) -> Float64:
    """The orthonormal matrix nearest to this one: U V^T of its singular value decomposition."""
    u, _, vt = scipy.linalg.svd(matrix, full_matrices=False)
    return np.asarray(u @ vt)
