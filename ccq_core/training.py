"""Algorithm 1 of the paper: alternate the mappings R, the codebooks C and the codes B.

For an object with the set S of modalities, the part of Eqn. 4 that depends on its code is w |z - y|^2 + const with
w = sum of lambda_v and z = sum of lambda_v R^vT x^v / w over S. So paired, semi-paired and unpaired objects of any
number of modalities are one weighted problem on the fused latent vectors z.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccq_core.codebooks import code_sums, initial_codebooks, solve_codebooks, tree_order
from ccq_core.features import FeatureSet, Float32
from ccq_core.mappings import procrustes
from ccq_core.quantizer import AdditiveQuantizer, Codes, Effort, K

Float64 = NDArray[np.float64]
STARTS = ("joint", "identity")
_JOINT_ROUNDS = 5
# Noise on the codewords in the first half of the iterations, as a share of the data's spread; see `_perturbed`.
_NOISE = 0.5


@dataclass(frozen=True)
class Progress:
    """What a training callback is told after each iteration.

    Attributes
    ----------
    iteration, iterations:
        How many are done, and the most there can be.
    loss:
        Eqn. 4 divided by the weighted energy of the features: 1 means that nothing is explained, 0 that all is.
    seconds:
        Time since training began.
    """

    iteration: int
    iterations: int
    loss: float
    seconds: float


@dataclass(frozen=True)
class Trained:
    """What Algorithm 1 returns: mappings R^v (P_v, D), codebooks (M, 256, D), codes (n, M), loss per iteration."""

    mappings: dict[str, Float32]
    codebooks: Float32
    codes: Codes
    losses: list[float]


def fuse(latents: Mapping[str, Float32], features: FeatureSet, weights: Mapping[str, float]) -> tuple[Float32, Float64]:
    """Weighted mean z (n, D) float32 of each object's latent vectors, and its total weight w (n,) float64.

    An object that has none of these modalities gets zeros.
    """
    shares = {name: weights[name] * features.present[name] for name in latents}
    total: Float64 = np.stack(list(shares.values())).sum(axis=0)
    divisor = np.where(total > 0, total, 1.0)
    z = sum(latent * (shares[name] / divisor).astype(np.float32)[:, None] for name, latent in latents.items())
    return np.asarray(z, dtype=np.float32), total


def initial_mappings(x: FeatureSet, dim: int, weights: Mapping[str, float], start: str) -> dict[str, Float32]:
    """First mappings R^v (P_v, D).

    ``identity``: the first D columns of the identity, as Algorithm 1 has it.

    ``joint``: the heaviest modality starts on its principal axes, and each of the others is turned towards what is
    known of its objects so far; then a few rounds of Algorithm 1 without a quantizer (y = z) settle them together. A
    modality that shares too few objects with the others starts on its own principal axes.
    """
    if start == "identity":
        return {name: np.eye(array.shape[1], dim, dtype=np.float32) for name, array in x.arrays.items()}
    mappings: dict[str, Float32] = {}
    order = sorted(x, key=lambda name: -weights[name] * float(np.square(x.arrays[name], dtype=np.float64).sum()))
    for name in order:
        array = x.arrays[name]
        if mappings:
            z, known = fuse({v: x.arrays[v] @ r for v, r in mappings.items()}, x, weights)
            if np.count_nonzero(x.present[name] & (known > 0)) > dim:
                # Rows without this modality are zero, and so are targets of objects not known yet.
                mappings[name] = procrustes((array.T @ z).astype(np.float64))
                continue
        mappings[name] = _principal_axes(array, dim)
    for _ in range(_JOINT_ROUNDS):
        z, _ = fuse({v: x.arrays[v] @ r for v, r in mappings.items()}, x, weights)
        mappings = _update_mappings(x, z)
    return mappings


def train(
    x: FeatureSet,
    *,
    m: int,
    dim: int,
    weights: Mapping[str, float],
    effort: Effort,
    iterations: int,
    tolerance: float,
    ridge: float,
    start: str,
    rng: np.random.Generator,
    callback: Callable[[Progress], None] | None = None,
) -> Trained:
    """Run Algorithm 1 on preprocessed features until the relative loss settles.

    Parameters
    ----------
    x:
        Preprocessed features; absent rows are zero.
    m, dim:
        Number of codebooks M, latent dimension D.
    weights:
        lambda_v of each modality.
    effort:
        How hard to look for codes in each iteration.
    iterations, tolerance:
        Stop after so many iterations, or when one lowers the loss by less than `tolerance` times its value. With a beam
        the first half of the iterations has noise on the codewords, and none of these is the last.
    ridge:
        Stabiliser of the codebook update (see `solve_codebooks`).
    start:
        See `initial_mappings`.
    callback:
        Called after each iteration. An exception that it raises ends the training.
    """
    began = time.perf_counter()
    energy = sum(weights[v] * float(np.square(x.arrays[v], dtype=np.float64).sum()) for v in x)
    energy = energy or 1.0
    mappings = initial_mappings(x, dim, weights, start)
    z, w = fuse({v: x.arrays[v] @ r for v, r in mappings.items()}, x, weights)
    codebooks = initial_codebooks(z, m, rng)
    codes = AdditiveQuantizer(codebooks).encode(z, effort)
    losses: list[float] = []
    # A beam finds better codes afresh than a descent does from those of the iteration before, and it can take noise.
    beam = effort.beam > 1
    calm = iterations // 2 if beam else 0
    for iteration in range(iterations):
        y = AdditiveQuantizer(codebooks).decode(codes)
        mappings = _update_mappings(x, y)
        z, w = fuse({v: x.arrays[v] @ r for v, r in mappings.items()}, x, weights)
        codebooks = solve_codebooks(*code_sums(codes, w, z), ridge)
        if iteration < calm:
            codebooks = _perturbed(codebooks, z, 1 - iteration / calm, rng)
        quantizer = AdditiveQuantizer(codebooks)
        codes = quantizer.encode(z, effort, start=None if beam else codes)
        loss = _loss(energy, w, z, quantizer.decode(codes))
        losses.append(loss)
        if callback is not None:
            callback(Progress(iteration + 1, iterations, loss, time.perf_counter() - began))
        if iteration > calm and losses[-2] - loss < tolerance * losses[-2]:
            break
    codebooks, codes = _ordered(codebooks, codes)
    return Trained(mappings, codebooks, codes, losses)


def _perturbed(codebooks: Float32, z: Float32, temperature: float, rng: np.random.Generator) -> Float32:
    """Codewords with noise as uneven as the data, so that codes leave the optimum nearest to the start for a better one.

    Stochastic relaxation, SR-D, of Martinez et al., "LSQ++: lower running time and higher recall in multi-codebook
    quantization", ECCV 2018.
    """
    scale = temperature * _NOISE / len(codebooks) * z.std(axis=0, dtype=np.float64)
    return np.asarray(codebooks + scale * rng.standard_normal(codebooks.shape), dtype=np.float32)


def _ordered(codebooks: Float32, codes: Codes) -> tuple[Float32, Codes]:
    """The same codebooks with neighbours alike, and the codes that go with them."""
    books, renamed = codebooks.copy(), codes.copy()
    for m, book in enumerate(codebooks):
        order = tree_order(book)
        place = np.empty(K, dtype=np.uint8)
        place[order] = np.arange(K)
        books[m], renamed[:, m] = book[order], place[codes[:, m]]
    return books, renamed


def _update_mappings(x: FeatureSet, y: Float32) -> dict[str, Float32]:
    """R^v by orthogonal Procrustes; absent rows are zero and add nothing to the sums."""
    return {name: procrustes((array.T @ y).astype(np.float64)) for name, array in x.arrays.items()}


def _principal_axes(array: Float32, dim: int) -> Float32:
    gram = (array.T @ array).astype(np.float64)
    _, vectors = np.linalg.eigh(gram)
    axes = vectors[:, ::-1][:, :dim]
    # The sign of an eigenvector is arbitrary: fix it, so that results do not depend on the LAPACK at hand.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(axes * signs, dtype=np.float32)


def _loss(energy: float, w: Float64, z: Float32, y: Float32) -> float:
    """Eqn. 4 over the energy: sum lambda_v |x_v|^2 - w |z|^2 + w |z - y|^2, summed over objects."""
    gain = np.einsum("nd,nd->n", z, z, dtype=np.float64) - np.einsum("nd,nd->n", z - y, z - y, dtype=np.float64)
    return 1.0 - float(w @ gain) / energy
