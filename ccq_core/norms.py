"""The norm byte: squared norms of reconstructions, quantized to 256 levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccq_core.features import Float32
from ccq_core.quantizer import Codes, decode

LEVELS = 256


def square_norms(codebooks: Float32, codes: Codes) -> NDArray[np.float64]:
    """|y|^2 (n,) float64 of the reconstructions of codes (n, M), a chunk at a time."""
    out = np.empty(len(codes))
    for lo in range(0, len(codes), 1 << 16):
        y = decode(codebooks, codes[lo : lo + (1 << 16)])
        out[lo : lo + len(y)] = np.einsum("nd,nd->n", y, y, dtype=np.float64)
    return out


def fit_levels(values: NDArray[np.float64], rounds: int = 100) -> Float32:
    """Levels of a scalar quantizer for squared norms: Lloyd's algorithm, up to 256 distinct values exactly.

    It starts from levels as dense as the cube root of the values' density, which is best for many levels (Panter and
    Dite, Proc. IRE 39, 1951); from plain quantiles the sparse tail takes a thousand rounds to catch up.

    Parameters
    ----------
    values:
        (n,) squared norms of training reconstructions, n >= 1.

    Returns
    -------
    (256,) float32, ascending, padded with copies of the last.
    """
    distinct = np.unique(values.astype(np.float32))
    if len(distinct) <= LEVELS:
        return np.pad(distinct, (0, LEVELS - len(distinct)), mode="edge")
    values = np.sort(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    counts, bounds = np.histogram(values, bins=2 * LEVELS)
    mass = np.concatenate([[0.0], np.cumsum(np.cbrt(counts))])
    levels = np.interp((np.arange(LEVELS) + 0.5) / LEVELS * mass[-1], mass, bounds)
    for _ in range(rounds):
        edges = np.concatenate([[0], np.searchsorted(values, (levels[1:] + levels[:-1]) / 2), [len(values)]])
        counts = np.diff(edges)
        means = np.diff(sums[edges]) / np.maximum(counts, 1)
        # A level that nothing falls into keeps its place; sorting keeps the bounds in order.
        levels = np.sort(np.where(counts > 0, means, levels))
    fitted: Float32 = levels.astype(np.float32)
    return fitted


def encode_norms(levels: Float32, values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Index of the nearest level (the lower one of two at equal distance) for squared norms (n,); (n,) uint8."""
    wide = levels.astype(np.float64)
    return np.searchsorted((wide[1:] + wide[:-1]) / 2, values, side="left").astype(np.uint8)
