"""The additive quantizer: M codebooks of K = 256 codewords, a vector is the sum of one codeword from each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccq_core import _native, simd
from ccq_core.features import Float32
from ccq_core.memory import aligned_empty

K = 256
Codes = NDArray[np.uint8]

# Rows encoded at a time: their unary terms (M x K float32 a row) stay near the last-level cache.
_CHUNK_FLOATS = 1 << 20


@dataclass(frozen=True)
class Effort:
    """How hard to look for good codes.

    Attributes
    ----------
    beam:
        Partial codes kept from codebook to codebook (beam search); 1 is greedy residual coding.
    sweeps:
        Rounds of iterated conditional modes (ICM) afterwards: each code in turn is set to its best value given the
        others, until a round changes nothing.
    rounds:
        Then iterated local search: a code is replaced at random, ICM descends again from its neighbour on, and the
        better codes are kept; so often. (Martinez et al., "Revisiting additive quantization", ECCV 2016.)
    """

    beam: int = 1
    sweeps: int = 3
    rounds: int = 0


# One setting of quality against speed: 0 greedy, 1 ICM, 2 and 3 iterated local search. Points a second on one thread,
# M = 4, D = 64, and relative squared error on the same codebooks: 520k .377, 430k .356, 190k .326, 80k .311.
EFFORTS = (Effort(sweeps=0), Effort(), Effort(beam=4), Effort(beam=8, rounds=12))


class AdditiveQuantizer:
    """Encodes latent vectors z (D,) as codes b (M,) so that y = sum_m C_m[b_m] is near z.

    Parameters
    ----------
    codebooks:
        (M, 256, D) float32, the paper's C.
    """

    def __init__(self, codebooks: Float32) -> None:
        self.codebooks = codebooks
        flat = codebooks.reshape(len(codebooks) * K, -1)
        self._square_norms = np.einsum("kd,kd->k", flat, flat)
        self._minus_two_flat = np.ascontiguousarray(-2.0 * flat.T)

    @cached_property
    def _cross(self) -> Float32:
        """2 <C_l[i], C_m[j]>, indexed [l, i, m, j]: what code i for l adds to the cost of code j for m; 0 for l = m.

        Up to 64 MiB for the longest codes, so it is made when something is encoded.
        """
        m = len(self.codebooks)
        flat = self.codebooks.reshape(m * K, -1)
        cross: Float32 = aligned_empty((m, K, m, K), np.float32)
        np.matmul(2.0 * flat, flat.T, out=cross.reshape(m * K, m * K))
        for i in range(m):
            cross[i, :, i] = 0.0
        return cross

    def decode(self, codes: Codes) -> Float32:
        """Reconstructions y (n, D) float32 of codes (n, M) uint8."""
        return decode(self.codebooks, codes)

    def encode(self, z: Float32, effort: Effort = Effort(), *, start: Codes | None = None) -> Codes:
        """Codes of latent vectors, Eqn. 9 of the paper.

        A vector's codes do not depend on the vectors beside it, as far as the matrix library rounds alike.

        Parameters
        ----------
        z:
            (n, D) float32.
        effort:
            How hard to look.
        start:
            (n, M) codes to descend from instead of the beam's.

        Returns
        -------
        (n, M) uint8.
        """
        m = len(self.codebooks)
        codes = np.empty((len(z), m), dtype=np.uint8) if start is None else start.copy()
        step = max(64, _CHUNK_FLOATS // (m * K))
        unary = aligned_empty((min(step, len(z)), m, K), np.float32)
        level = simd.get_level()
        for lo in range(0, len(z), step):
            part = codes[lo : lo + step]
            terms = unary[: len(part)]
            # |z - y|^2 = |z|^2 + sum_m unary_m[b_m] + sum_{l < m} cross_{l, m}[b_l, b_m]
            flat = terms.reshape(len(part), m * K)
            np.matmul(z[lo : lo + step], self._minus_two_flat, out=flat)
            flat += self._square_norms
            if level == simd.NUMPY:
                _ReferenceEncoder(terms, self._cross).encode(part, effort, start is not None)
            else:
                _native.encode(
                    terms,
                    self._cross,
                    part,
                    effort.beam,
                    effort.sweeps,
                    effort.rounds,
                    start is not None,
                    simd.get_threads(),
                    level,
                )
        return codes


class _ReferenceEncoder:
    """What the compiled encoder does, in NumPy, bit for bit.

    `sums` (n, M, 256) are the costs of all codes given the others: sums[:, m, j] = unary_m[j] + sum over l of
    cross_{l, m}[b_l, j].
    """

    def __init__(self, unary: Float32, cross: Float32) -> None:
        self._unary = unary
        self._cross = cross
        self._rows = np.arange(len(unary))
        self._m = unary.shape[1]

    def encode(self, codes: Codes, effort: Effort, started: bool) -> None:
        if not started:
            codes[:] = self._beam_search(effort.beam)
        sums = self._unary.copy()
        for m in range(self._m):
            sums += self._cross[m, codes[:, m]]
        self._descend(sums, codes, effort.sweeps)
        self._local_search(sums, codes, effort)

    def _beam_search(self, width: int) -> Codes:
        n = len(self._unary)
        kept = np.zeros((n, 1, self._m), dtype=np.uint8)
        cost = np.zeros((n, 1), dtype=np.float32)
        for m in range(self._m):
            grown = np.repeat(self._unary[:, None, m], kept.shape[1], axis=1)
            for i in range(m):
                grown += self._cross[i, kept[:, :, i], m]
            grown += cost[:, :, None]
            flat = grown.reshape(n, -1)
            best = np.argsort(flat, axis=1, kind="stable")[:, :width]
            cost = np.take_along_axis(flat, best, axis=1)
            kept = np.take_along_axis(kept, (best // K)[:, :, None], axis=1)
            kept[:, :, m] = best % K
        return kept[:, 0]

    def _set(self, sums: Float32, codes: Codes, m: int, new: Codes, rows: NDArray[np.intp]) -> Float32:
        """Set code m of some rows, and return by how much that changes |z - y|^2."""
        old = codes[rows, m]
        change: Float32 = sums[rows, m, new] - sums[rows, m, old]
        sums[rows] = sums[rows] - self._cross[m, old] + self._cross[m, new]
        codes[rows, m] = new
        return change

    def _descend(self, sums: Float32, codes: Codes, sweeps: int, first: int = 0) -> Float32:
        change = np.zeros(len(codes), dtype=np.float32)
        for _ in range(sweeps):
            before = codes.copy()
            for m in [*range(first, self._m), *range(first)]:
                costs = sums[:, m]
                rows = np.flatnonzero(costs.min(axis=1) < costs[self._rows, codes[:, m]])
                best = costs[rows].argmin(axis=1).astype(np.uint8)
                change[rows] += self._set(sums, codes, m, best, rows)
            if np.array_equal(before, codes):
                break
        return change

    def _local_search(self, sums: Float32, codes: Codes, effort: Effort) -> None:
        random = _xorshift32()  # the same perturbations for every row
        for _ in range(effort.rounds):
            trial, costs = codes.copy(), sums.copy()
            x = next(random)
            m = x % self._m
            change = self._set(costs, trial, m, np.full(len(trial), x >> 24, dtype=np.uint8), self._rows)
            change += self._descend(costs, trial, effort.sweeps, (m + 1) % self._m)
            better = change < 0
            codes[better], sums[better] = trial[better], costs[better]


def _xorshift32() -> Iterator[int]:
    state = 2463534242
    while True:
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        yield state


def decode(codebooks: Float32, codes: Codes) -> Float32:
    """Reconstructions y = sum_m C_m[b_m] (n, D) float32 of codes (n, M) uint8."""
    y: Float32 = codebooks[0][codes[:, 0]]
    for m in range(1, len(codebooks)):
        y += codebooks[m][codes[:, m]]
    return y
