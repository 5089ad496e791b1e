"""Codebooks C: their start, and their update for fixed codes (Eqn. 8 of the paper)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from ccq_core.features import Float32
from ccq_core.quantizer import AdditiveQuantizer, Codes, Effort, K

Float64 = NDArray[np.float64]
_POINTS = 1 << 12  # points that are float64 at a time
_START_ROUNDS = 10


def initial_codebooks(z: Float32, m: int, rng: np.random.Generator) -> Float32:
    """Start each codebook from what the ones before it leave of some points: residual K-means.

    Parameters
    ----------
    z:
        (n, D) float32 latent vectors, at least one.
    m:
        How many codebooks.
    rng:
        Picks the points that each K-means starts from.

    Returns
    -------
    (M, 256, D) float32.
    """
    residual = z.copy()
    books = np.empty((m, K, z.shape[1]), dtype=np.float32)
    for book in books:
        book[:] = residual[rng.choice(len(z), size=K, replace=len(z) < K)]
        for _ in range(_START_ROUNDS):
            nearest = _nearest(residual, book)
            points = np.bincount(nearest[:, 0], minlength=K)[:, None]
            book[:] = np.where(points > 0, code_sums(nearest, residual) / np.maximum(points, 1), book)
        residual -= book[_nearest(residual, book)[:, 0]]
    return books


def _nearest(points: Float32, book: Float32) -> Codes:
    return AdditiveQuantizer(book[None]).encode(points, Effort(sweeps=0))


def code_counts(codes: Codes, weights: Float64) -> Float64:
    """Weighted counts of pairs of codes, A (MK, MK) float64 = sum_n w_n b_n b_n^T: the left of the normal equations.

    A sum over points, so those of several batches add up.
    """
    m = codes.shape[1]
    a = np.zeros((m * K, m * K))
    wide = codes.astype(np.int64)
    for j in range(m):
        rows = slice(j * K, (j + 1) * K)
        for i in range(j + 1):
            columns = slice(i * K, (i + 1) * K)
            counts = np.bincount(wide[:, j] * K + wide[:, i], weights=weights, minlength=K * K).reshape(K, K)
            a[rows, columns] = counts
            a[columns, rows] = counts.T
    return a


def code_sums(codes: Codes, x: Float32 | Float64) -> Float64:
    """G (MK, P) float64 = sum_n b_n x_n^T: for each codeword the sum of the vectors (n, P) that have its code."""
    total = np.zeros((codes.shape[1] * K, x.shape[1]))
    for lo in range(0, len(x), _POINTS):
        part = x[lo : lo + _POINTS].astype(np.float64)
        for j, column in enumerate(codes[lo : lo + _POINTS].T):
            total[j * K : (j + 1) * K] += _one_hot(column).T @ part
    return total


def _one_hot(codes: NDArray[np.uint8]) -> scipy.sparse.csr_array:
    """The n x 256 matrix with ones at codes[n], held as its n non-zeros."""
    n = len(codes)
    return scipy.sparse.csr_array((np.ones(n), codes.astype(np.int32), np.arange(n + 1)), shape=(n, K))


def solve_codebooks(a: Float64, s: Float64, ridge: float) -> Float32:
    """Codebooks that minimise the weighted squared error, by Cholesky of the ridge-stabilised normal equations.

    A is singular by nature (a constant may move between two codebooks), so `ridge` times its mean diagonal is added; a
    codeword that no point uses becomes zero. The block of one codebook is diagonal, since a point has one code in it:
    the first codebook is eliminated by division, and Cholesky only sees the others.

    Returns
    -------
    (M, 256, D) float32.
    """
    size = len(a)
    level = ridge * np.trace(a) / size
    first = np.diagonal(a)[:K] + level
    others = slice(K, size)
    solution = np.empty_like(s)
    if size > K:
        coupling = a[others, :K] / first
        schur = a[others, others] - coupling @ a[:K, others]
        schur[np.diag_indices_from(schur)] += level
        right = s[others] - coupling @ s[:K]
        solution[others] = scipy.linalg.solve(schur, right, assume_a="pos", overwrite_a=True, check_finite=False)
    solution[:K] = (s[:K] - a[:K, others] @ solution[others]) / first[:, None]
    return solution.reshape(size // K, K, -1).astype(np.float32)


def descend_codebooks(
    codes: Codes,
    weights: Float32,
    s: Float64,
    ridge: float,
    start: Float32,
    *,
    steps: int = 100,
    tolerance: float = 1e-5,
) -> Float32:
    """What `solve_codebooks` returns, up to a tolerance, without A: by conjugate gradients from codebooks nearby.

    A product with A is a reconstruction of all points and a sum of these by code, so memory holds a few times MK x D
    numbers instead of (MK)^2, and some thousand points. For long codes and little memory: Cholesky is faster.

    Parameters
    ----------
    codes, weights:
        (n, M) uint8 and w (n,) float32 of the points.
    s:
        (MK, D), the right side.
    ridge:
        As for `solve_codebooks`.
    start:
        (M, 256, D) float32, where to begin.
    steps, tolerance:
        Stop after so many steps, or when the residual of the normal equations is so small a part of the right side.
    """
    m = codes.shape[1]
    total = float(np.sum(weights, dtype=np.float64))
    level = ridge * total / K

    def times(v: Float64) -> Float64:
        product = level * v
        books = v.reshape(m, K, -1)
        for lo in range(0, len(codes), _POINTS):
            some = codes[lo : lo + _POINTS]
            y = sum(books[j][some[:, j]] for j in range(m)) * weights[lo : lo + _POINTS, None]
            product += code_sums(some, y)
        return np.asarray(product)

    diagonal = np.full(m * K, level)
    for lo in range(0, len(codes), _POINTS):
        some = slice(lo, lo + _POINTS)
        diagonal += np.concatenate([np.bincount(column, weights[some], K) for column in codes[some].T])
    solution = start.reshape(m * K, -1).astype(np.float64)
    residual = s - times(solution)
    direction = step = residual / diagonal[:, None]
    energy = np.einsum("kd,kd->d", residual, step)
    enough = tolerance * np.sqrt(np.einsum("kd,kd->d", s, s))
    for _ in range(steps):
        if (np.sqrt(np.einsum("kd,kd->d", residual, residual)) <= enough).all():
            break
        image = times(direction)
        curvature = np.einsum("kd,kd->d", direction, image)
        length = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
        solution += length * direction
        residual -= length * image
        step = residual / diagonal[:, None]
        before, energy = energy, np.einsum("kd,kd->d", residual, step)
        direction = step + np.divide(energy, before, out=np.zeros_like(energy), where=before > 0) * direction
    return np.asarray(solution.reshape(m, K, -1), dtype=np.float32)


def pair_order(codebook: Float32) -> NDArray[np.intp]:
    """An order in which codewords j and j + 128 are alike, for j below 128.

    The AVX2 scan bounds such two at once, which passes over more rows the more alike they are. Codewords are paired
    greedily, nearest first.

    Parameters
    ----------
    codebook:
        (256, D) float32.

    Returns
    -------
    (256,) indices: the codeword at place i of the new order.
    """
    square = np.einsum("kd,kd->k", codebook, codebook)
    first, second = np.triu_indices(K, 1)
    apart = (square[:, None] + square - 2.0 * (codebook @ codebook.T))[first, second]
    free = np.ones(K, dtype=bool)
    pairs: list[list[int]] = []
    for pair in np.column_stack([first, second])[np.argsort(apart, kind="stable")].tolist():
        if free[pair].all():
            free[pair] = False
            pairs.append(pair)
    return np.array(pairs).T.ravel()
