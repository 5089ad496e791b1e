"""Algorithm 1 of the paper: alternate the mappings R, the codebooks C and the codes B.

For an object with the set S of modalities, the part of Eqn. 4 that depends on its code is w |z - y|^2 + const with
w = sum of lambda_v and z = sum of lambda_v R^vT x^v / w over S. So paired, semi-paired and unpaired objects of any
number of modalities are one weighted problem on the fused latent vectors z.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccq_core.checkpoint import Checkpoint, State
from ccq_core.codebooks import (
    code_counts,
    code_sums,
    descend_codebooks,
    initial_codebooks,
    pair_order,
    solve_codebooks,
)
from ccq_core.features import MIN_ABS, FeatureSet, Float32
from ccq_core.mappings import procrustes
from ccq_core.quantizer import AdditiveQuantizer, Codes, Effort, K
from ccq_core.source import Source, sample

Float64 = NDArray[np.float64]
STARTS = ("joint", "identity")
SOLVERS = ("cholesky", "cg")
_JOINT_ROUNDS = 5
# Noise on the codewords in the first half of the iterations, as a share of the data's spread; see `_perturbed`.
_NOISE = 0.5
_LENGTHS = 10_000  # objects that tell how long latent vectors are
_START_OBJECTS = 20_000  # objects that the first codebooks are made from
_GRAM_ROWS = 1 << 12  # rows that are float64 at a time
Maps = Mapping[str, Float32]


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
    """What Algorithm 1 returns.

    Attributes
    ----------
    mappings:
        R^v (P_v, D) float32.
    codebooks:
        (M, 256, D) float32.
    codes:
        (n, M) uint8.
    losses:
        Loss after each iteration.
    grams, crosses:
        Sums over the objects, x_n x_n^T (P_v, P_v) and x_n y_n^T (P_v, D), y_n the reconstructions; float64. What maps
        for unseen objects are to be regressed on, so objects are weighted where not all have all modalities: see
        `_regression_sums`.
    """

    mappings: dict[str, Float32]
    codebooks: Float32
    codes: Codes
    losses: list[float]
    grams: dict[str, Float64]
    crosses: dict[str, Float64]


def fuse(latents: Maps, features: FeatureSet, weights: Mapping[str, float]) -> tuple[Float32, Float64]:
    """Weighted mean z (n, D) float32 of each object's latent vectors, and its total weight w (n,) float64.

    An object that has none of these modalities gets zeros.
    """
    shares = {name: np.float64(weights[name]) * features.present[name] for name in latents}
    total = sum(shares.values(), np.zeros(features.n))
    divisor = np.where(total > 0, total, 1.0)
    z = sum(latent * (shares[name] / divisor).astype(np.float32)[:, None] for name, latent in latents.items())
    return np.asarray(z, dtype=np.float32), total


class Objects:
    """Training objects and how much each modality counts: what all passes over them share.

    Parameters
    ----------
    source:
        Preprocessed features; rows of absent modalities are zero.
    weights:
        lambda_v of each modality.
    linear:
        Matrices (P_v, P_v) that the features of a modality still have to be multiplied with. Maps and sums are
        multiplied instead, which are fewer than objects.
    grams:
        The sums x_n x_n^T (P_v, P_v) of finished features, for modalities for which they are known already.
    """

    def __init__(
        self,
        source: Source,
        weights: Mapping[str, float],
        linear: Maps | None = None,
        grams: Mapping[str, Float64] | None = None,
    ) -> None:
        self.source = source
        self.weights = weights
        self._linear = linear or {}
        known = dict(grams or {})
        known |= self._sum_grams([name for name in source.dims if name not in known])
        # Features that are nearly zero carry nothing.
        self.grams = {name: known[name] * (np.trace(known[name]) > MIN_ABS**2) for name in source.dims}

    @property
    def energy(self) -> float:
        """sum lambda_v |x_n^v|^2; 1 where that is 0."""
        return sum(self.weights[name] * float(np.trace(gram)) for name, gram in self.grams.items()) or 1.0

    def latents(self, batch: FeatureSet, mappings: Maps) -> tuple[Float32, Float64]:
        """z and w of some objects (see `fuse`), under the mappings of some modalities."""
        maps: dict[str, Float32] = {
            name: self._linear[name] @ r if name in self._linear else r for name, r in mappings.items()
        }
        return fuse({name: batch.arrays[name] @ r for name, r in maps.items()}, batch, self.weights)

    def lift(self, name: str, sums: Float64) -> Float64:
        """Sums x_n t_n^T (P_v, T) of features as the source has them, turned into those of finished features."""
        return self._linear[name].T.astype(np.float64) @ sums if name in self._linear else sums

    def crosses(self, mappings: Maps, names: Iterable[str]) -> tuple[dict[str, Float64], dict[str, int]]:
        """Sums x_n z_n^T (P_v, D) for some modalities, and how many objects of each have a z."""
        totals = {name: np.zeros((self.source.dims[name], next(iter(mappings.values())).shape[1])) for name in names}
        counts = dict.fromkeys(totals, 0)
        for batch in self.source:
            z, known = self.latents(batch, mappings)
            for name, total in totals.items():
                # Rows without this modality are zero, and so is the z of objects that are not known yet.
                total += batch.arrays[name].T @ z
                counts[name] += int(np.count_nonzero(batch.present[name] & (known > 0)))
        return {name: self.lift(name, total) for name, total in totals.items()}, counts

    def _sum_grams(self, names: Sequence[str]) -> dict[str, Float64]:
        """In float64, for the rounding of float32 would outweigh a small ridge."""
        grams = {name: np.zeros((self.source.dims[name],) * 2) for name in names}
        for batch in self.source if names else ():
            for name, gram in grams.items():
                for lo in range(0, batch.n, _GRAM_ROWS):
                    part = batch.arrays[name][lo : lo + _GRAM_ROWS].astype(np.float64)
                    gram += part.T @ part
        return {name: self.lift(name, self.lift(name, gram).T) for name, gram in grams.items()}


def initial_mappings(x: Objects, dim: int, start: str) -> dict[str, Float32]:
    """First mappings R^v (P_v, D).

    ``identity``: the first D columns of the identity, as Algorithm 1 has it.

    ``joint``: the heaviest modality starts on its principal axes, and each of the others is turned towards what is
    known of its objects so far; then a few rounds of Algorithm 1 without a quantizer (y = z) settle them together. A
    modality that shares too few objects with the others starts on its own principal axes.
    """
    if start == "identity":
        return {name: np.eye(p, dim, dtype=np.float32) for name, p in x.source.dims.items()}
    mappings: dict[str, Float32] = {}
    for name in sorted(x.grams, key=lambda name: -x.weights[name] * float(np.trace(x.grams[name]))):
        if mappings:
            crosses, known = x.crosses(mappings, [name])
            if known[name] > dim:
                mappings[name] = procrustes(crosses[name])
                continue
        mappings[name] = _principal_axes(x.grams[name], dim)
    for _ in range(_JOINT_ROUNDS):
        crosses, _ = x.crosses(mappings, mappings)
        mappings = {name: procrustes(cross) for name, cross in crosses.items()}
    return {name: mappings[name] for name in x.source.dims}


@dataclass
class _Pass:
    """Sums over the objects, of their codes b_n and of their z_n under the mappings that these were found with.

    Attributes
    ----------
    counts:
        (MK, MK) = sum w_n b_n b_n^T, where asked for.
    members:
        (MK, P_v) = sum b_n x_n^T.
    gain:
        sum w_n (|z_n|^2 - |z_n - y_n|^2).
    spread:
        (D,) standard deviation of z.
    """

    counts: Float64 | None
    members: dict[str, Float64]
    gain: float
    spread: Float64


@dataclass(frozen=True)
class Room:
    """Where training keeps what it knows of each object: codes (n, M) uint8 and total weights w (n,) float32."""

    codes: Codes
    weights: Float32


def _encode(
    x: Objects,
    mappings: Maps,
    codebooks: Float32,
    room: Room,
    effort: Effort,
    *,
    start: bool,
    count: bool,
    known: bool = False,
) -> _Pass:
    """Find codes for all objects and write them down, from those that are there if `start`; if `known`, take those."""
    quantizer = AdditiveQuantizer(codebooks)
    m, _, dim = codebooks.shape
    counts = np.zeros((m * K, m * K)) if count else None
    members = {name: np.zeros((m * K, p)) for name, p in x.source.dims.items()}
    first, second = np.zeros((2, dim))
    gain, row = 0.0, 0
    for batch in x.source:
        z, w = x.latents(batch, mappings)
        rows = slice(row, row + batch.n)
        if known:
            found = np.array(room.codes[rows])
        else:
            found = quantizer.encode(z, effort, start=room.codes[rows] if start else None)
            room.codes[rows] = found
        room.weights[rows] = w
        if counts is not None:
            counts += code_counts(found, w)
        for name, total in members.items():
            total += code_sums(found, batch.arrays[name])
        apart = z - quantizer.decode(found)
        square = np.square(z, dtype=np.float64)
        gain += float(w @ (square.sum(axis=1) - np.einsum("nd,nd->n", apart, apart, dtype=np.float64)))
        first += z.sum(axis=0, dtype=np.float64)
        second += square.sum(axis=0)
        row += batch.n
    spread = np.sqrt(np.maximum(second / row - np.square(first / row), 0.0))
    members = {name: np.ascontiguousarray(x.lift(name, total.T).T) for name, total in members.items()}
    return _Pass(counts, members, gain, spread)


def train(
    x: Objects,
    room: Room,
    *,
    dim: int,
    effort: Effort,
    iterations: int,
    tolerance: float,
    ridge: float,
    solver: str,
    start: str,
    rng: np.random.Generator,
    callback: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Run Algorithm 1 on preprocessed features until the relative loss settles.

    Each iteration is one pass over the objects, which leaves the sums that the next mappings and codebooks follow from
    (section 4.2 of the paper): with y_n = C b_n, sum x_n y_n^T is G^T C for G = sum b_n x_n^T, and the right side of
    the normal equations, sum w_n b_n z_n^T, is sum_v lambda_v G_v R_v. So no more than a batch is in memory.

    Parameters
    ----------
    x:
        Training objects.
    room:
        For as many objects.
    dim:
        Latent dimension D.
    effort:
        How hard to look for codes in each iteration.
    iterations, tolerance:
        Stop after so many iterations, or when one lowers the loss by less than `tolerance` times its value. With a beam
        the first half of the iterations has noise on the codewords, and none of these is the last.
    ridge:
        Stabiliser of the codebook update (see `solve_codebooks`).
    solver:
        Of the codebook update: ``cholesky``, or ``cg``, which does without a matrix of (256 M)^2 numbers.
    start:
        See `initial_mappings`.
    callback:
        Called after each iteration. An exception that it raises ends the training.
    checkpoint:
        Where to go on from, and where to write down what iterations come to.
    """
    began = time.perf_counter()
    m = room.codes.shape[1]
    count = solver == "cholesky"
    saved = None if checkpoint is None else checkpoint.load(room.codes)
    losses: list[float] = []
    if saved is None:
        mappings = initial_mappings(x, dim, start)
        codebooks = _initial_codebooks(x, mappings, m, rng)
    else:
        mappings, codebooks, losses = saved.mappings, saved.codebooks, saved.losses
        began -= saved.seconds
        rng.bit_generator.state = saved.random
    sums = _encode(x, mappings, codebooks, room, effort, start=False, count=count, known=saved is not None)
    # A beam finds better codes afresh than a descent does from those of the iteration before, and it can take noise.
    beam = effort.beam > 1
    calm = iterations // 2 if beam else 0
    for iteration in range(len(losses), iterations):
        mappings = {name: procrustes(cross) for name, cross in _crosses(sums, codebooks).items()}
        right = np.asarray(sum(x.weights[name] * (total @ mappings[name]) for name, total in sums.members.items()))
        if sums.counts is None:
            codebooks = descend_codebooks(room.codes, room.weights, right, ridge, codebooks)
        else:
            codebooks = solve_codebooks(sums.counts, right, ridge)
        if iteration < calm:
            codebooks = _perturbed(codebooks, sums.spread, 1 - iteration / calm, rng)
        sums = _encode(x, mappings, codebooks, room, effort, start=not beam, count=count)
        # Eqn. 4 over the energy: sum lambda_v |x_v|^2 - w |z|^2 + w |z - y|^2.
        loss = 1.0 - sums.gain / x.energy
        losses.append(loss)
        if callback is not None:
            callback(Progress(iteration + 1, iterations, loss, time.perf_counter() - began))
        if iteration > calm and losses[-2] - loss < tolerance * losses[-2]:
            break
        if checkpoint is not None:
            checkpoint.save(
                State(mappings, codebooks, losses, time.perf_counter() - began, rng.bit_generator.state), room.codes
            )
    if all(count == x.source.n for count in x.source.having.values()):
        grams, crosses = x.grams, _crosses(sums, codebooks)
    else:
        grams, crosses = _regression_sums(x, codebooks, room.codes)
    return Trained(mappings, _ordered(codebooks, room.codes), room.codes, losses, grams, crosses)


def _initial_codebooks(x: Objects, mappings: Maps, m: int, rng: np.random.Generator) -> Float32:
    n = x.source.n
    some = sample(x.source, np.sort(rng.choice(n, size=min(n, _START_OBJECTS), replace=False)))
    z, _ = x.latents(some, mappings)
    return initial_codebooks(z, m, rng)


def _regression_sums(x: Objects, codebooks: Float32, codes: Codes) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """Weighted sums x_n x_n^T and x_n y_n^T by modality.

    An object counts by how much of its y comes from its other modalities, which is what a map from this one alone
    should foretell: 1 where all are there. Where there is no other, y only repeats what R made of x. Such objects help
    where few have company, and outvote them where they are many: so together they count as P_v.
    """
    source, weights = x.source, x.weights
    quantizer, dim = AdditiveQuantizer(codebooks), codebooks.shape[2]
    everything = sum(weights[name] for name in source.dims)
    grams = {name: np.zeros((p, p)) for name, p in source.dims.items()}
    crosses = {name: np.zeros((p, dim)) for name, p in source.dims.items()}
    row = 0
    for batch in source:
        y = quantizer.decode(codes[row : row + batch.n])
        total = sum(weights[name] * batch.present[name] for name in source.dims)
        for name, p in source.dims.items():
            company = (1 - weights[name] / np.maximum(total, weights[name])) / (1 - weights[name] / everything)
            counts = np.where(company > 0, company, min(1.0, p / max(source.alone[name], 1))) * batch.present[name]
            for lo in range(0, batch.n, _GRAM_ROWS):
                rows = slice(lo, lo + _GRAM_ROWS)
                part = batch.arrays[name][rows].astype(np.float64)
                weighted = (part * counts[rows, None]).T
                grams[name] += weighted @ part
                crosses[name] += weighted @ y[rows]
        row += batch.n
    return (
        {name: x.lift(name, x.lift(name, gram).T) for name, gram in grams.items()},
        {name: x.lift(name, cross) for name, cross in crosses.items()},
    )


def _crosses(sums: _Pass, codebooks: Float32) -> dict[str, Float64]:
    """sum x_n y_n^T (P_v, D) by modality."""
    words = codebooks.reshape(-1, codebooks.shape[2]).astype(np.float64)
    return {name: total.T @ words for name, total in sums.members.items()}


def _perturbed(codebooks: Float32, spread: Float64, temperature: float, rng: np.random.Generator) -> Float32:
    """Codewords with noise as uneven as the data: codes leave the optimum nearest to the start and find a better one.

    Stochastic relaxation, SR-D, of Martinez et al., "LSQ++: lower running time and higher recall in multi-codebook
    quantization", ECCV 2018.
    """
    scale = temperature * _NOISE / len(codebooks) * spread
    return np.asarray(codebooks + scale * rng.standard_normal(codebooks.shape), dtype=np.float32)


def kinds(x: Objects, some: FeatureSet, mappings: Maps) -> Iterator[Float32]:
    """z (n_i, D) of objects as databases hold them: by each of their modalities, then fused if there are several."""
    for names in [(name,) for name in mappings] + ([tuple(mappings)] if len(mappings) > 1 else []):
        z, weight = x.latents(some, {name: mappings[name] for name in names})
        yield z[weight > 0]


def directions(z: Float32) -> Float32:
    """Rows (n, D) float32 scaled to length one; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("nd,nd->n", z, z, dtype=np.float64))[:, None]
    return np.asarray(z / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def refit_to_directions(
    x: Objects, mappings: Maps, codebooks: Float32, effort: Effort, ridge: float, rounds: int
) -> Float32:
    """Codebooks (M, 256, D) for latent vectors of length one, under final mappings.

    Codes and codebooks are updated in turn, each time by one pass over the objects.
    """
    # Training objects are longer than one; shrunk by as much, their codebooks are where to start from.
    some = sample(x.source, np.arange(0, x.source.n, -(-x.source.n // _LENGTHS)))
    length = np.mean([np.linalg.norm(z, axis=1).mean() for z in kinds(x, some, mappings) if len(z)])
    codebooks = codebooks / np.float32(length or 1.0)
    m, _, dim = codebooks.shape
    for _ in range(rounds):
        quantizer = AdditiveQuantizer(codebooks)
        counts, sums = np.zeros((m * K, m * K)), np.zeros((m * K, dim))
        for batch in x.source:
            for z in map(directions, kinds(x, batch, mappings)):
                codes = quantizer.encode(z, effort)
                counts += code_counts(codes, np.ones(len(z)))
                sums += code_sums(codes, z)
        codebooks = solve_codebooks(counts, sums, ridge)
    return _ordered(codebooks, np.empty((0, m), dtype=np.uint8))


def _ordered(codebooks: Float32, codes: Codes) -> Float32:
    """The same codebooks in `pair_order`; codes (n, M) are renamed where they are."""
    books = codebooks.copy()
    for m, book in enumerate(codebooks):
        order = pair_order(book)
        place = np.empty(K, dtype=np.uint8)
        place[order] = np.arange(K)
        books[m] = book[order]
        codes[:, m] = place[codes[:, m]]
    return books


def _principal_axes(gram: Float64, dim: int) -> Float32:
    _, vectors = np.linalg.eigh(gram)
    axes = vectors[:, ::-1][:, :dim]
    # The sign of an eigenvector is arbitrary: fix it, so that results do not depend on the LAPACK at hand.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(axes * signs, dtype=np.float32)
