"""The additive quantizer: M codebooks of K = 256 codewords, a vector is the sum of one codeword from each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ccq_core.features import Float32

K = 256
Codes = NDArray[np.uint8]

# Rows encoded at a time: the working set of a chunk (M x K float32 a row) stays near the last-level cache.
_CHUNK_FLOATS = 1 << 20


class AdditiveQuantizer:
    """Encodes latent vectors z (D,) as codes b (M,) so that y = sum_m C_m[b_m] is near z.

    Parameters
    ----------
    codebooks:
        (M, 256, D) float32, the paper's C.
    """

    def __init__(self, codebooks: Float32) -> None:
        self.codebooks = codebooks
        flat = codebooks.reshape(-1, codebooks.shape[2])
        m = len(codebooks)
        # 2 <C_m[j], C_m'[j']>, indexed [m, m', j, j']: what choosing j for m adds to the cost of j' for m'.
        self._cross = np.ascontiguousarray((2.0 * flat @ flat.T).reshape(m, K, m, K).transpose(0, 2, 1, 3))
        self._square_norms = np.einsum("mkd,mkd->mk", codebooks, codebooks)

    def decode(self, codes: Codes) -> Float32:
        """Reconstructions y (n, D) float32 of codes (n, M) uint8."""
        return decode(self.codebooks, codes)

    def encode(self, z: Float32, *, start: Codes | None = None, sweeps: int = 3) -> Codes:
        """Codes of latent vectors, Eqn. 9 of the paper.

        Greedy residual coding from the first codebook to the last, then `sweeps` rounds of iterated conditional modes
        (ICM): each code in turn is set to its best value given the others, until a round changes nothing.

        Parameters
        ----------
        z:
            (n, D) float32.
        start:
            (n, M) codes to start ICM from instead of the greedy ones.
        sweeps:
            Rounds of ICM; 0 leaves the greedy codes.

        Returns
        -------
        (n, M) uint8.
        """
        m = len(self.codebooks)
        codes = np.empty((len(z), m), dtype=np.uint8)
        step = max(64, _CHUNK_FLOATS // (m * K))
        for lo in range(0, len(z), step):
            part = slice(lo, lo + step)
            codes[part] = self._encode_chunk(z[part], None if start is None else start[part], sweeps)
        return codes

    def _encode_chunk(self, z: Float32, start: Codes | None, sweeps: int) -> Codes:
        m = len(self.codebooks)
        # |z - y|^2 = |z|^2 + sum_m unary_m[b_m] + sum_{m < m'} cross[m, m'][b_m, b_m']
        unary = [self._square_norms[j] - 2.0 * (z @ self.codebooks[j].T) for j in range(m)]
        if start is None:
            codes = np.empty((len(z), m), dtype=np.uint8)
            for j in range(m):
                codes[:, j] = self._costs(unary, codes, j, range(j)).argmin(axis=1)
        else:
            codes = start.copy()
        for _ in range(sweeps if m > 1 or start is not None else 0):
            before = codes.copy()
            for j in range(m):
                codes[:, j] = self._costs(unary, codes, j, (i for i in range(m) if i != j)).argmin(axis=1)
            if np.array_equal(before, codes):
                break
        return codes

    def _costs(self, unary: list[Float32], codes: Codes, j: int, others: Iterable[int]) -> Float32:
        costs: Float32 = unary[j].copy()
        for i in others:
            costs += self._cross[i, j][codes[:, i]]
        return costs


def decode(codebooks: Float32, codes: Codes) -> Float32:
    """Reconstructions y = sum_m C_m[b_m] (n, D) float32 of codes (n, M) uint8."""
    y: Float32 = codebooks[0][codes[:, 0]]
    for m in range(1, len(codebooks)):
        y += codebooks[m][codes[:, m]]
    return y
