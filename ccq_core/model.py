"""CCQ: the estimator. Trains, maps, encodes, decodes, saves and loads."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import IO, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from ccq_core import modelfile
from ccq_core.checkpoint import Checkpoint
from ccq_core.distances import METRICS, DistanceTables, Metric, TableMaker, check_metric
from ccq_core.errors import FeatureError, InvalidInputError, ModelFormatError, NotFittedError
from ccq_core.features import (
    MAX_ABS,
    Features,
    FeatureSet,
    Float32,
    as_array,
    check_features,
    check_real,
    check_weight,
    check_whole,
    in_short,
)
from ccq_core.mappings import ridge
from ccq_core.norms import encode_norms, fit_levels, square_norms
from ccq_core.preprocessing import (
    Preprocessing,
    check_steps,
    fit_preprocessing,
    output_dim,
    plain_steps,
    preprocess,
)
from ccq_core.presets import DEFAULT_WEIGHTS, PRESETS
from ccq_core.quantizer import EFFORTS, AdditiveQuantizer, Codes
from ccq_core.source import InMemory, Source, Streamed, open_source, sample
from ccq_core.training import (
    SOLVERS,
    STARTS,
    Objects,
    Progress,
    Room,
    directions,
    fuse,
    kinds,
    refit_to_directions,
    train,
)

PAIR = "pair"
MAPPINGS = ("ridge", "procrustes")
FULL = "full"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_WHOLE_NUMBERS = {"bits": (8, 128), "effort": (0, len(EFFORTS) - 1), "iterations": (1, 1_000_000), "seed": (0, 2**64)}
# Singular matrices are only as solvable as their ridge is large.
_REAL_NUMBERS = {"mapping_ridge": (1e-9, 1e9), "codebook_ridge": (1e-9, 1e9), "tolerance": (0.0, 1.0)}
NORMS = ("byte", "none")
_CHOICES = {"metric": METRICS, "mapping": MAPPINGS, "start": STARTS, "norm": NORMS, "codebook_solver": SOLVERS}
_NORM_SAMPLE = 100_000
_DIRECTION_ROUNDS = 8
_CHUNK_ROWS = 1 << 14
_BLAS_THREADS_FROM = 50_000_000


@dataclass(frozen=True)
class Modality:
    """What a fitted model knows of one modality.

    Attributes
    ----------
    dim:
        P_v, the length of its feature vectors.
    weight:
        lambda_v.
    preprocessing:
        Fitted steps.
    mapping:
        (Q_v, D) float32 from preprocessed features to the latent space; Q_v is P_v unless a step changes it.
    """

    dim: int
    weight: float
    preprocessing: Preprocessing
    mapping: Float32

    def map(self, x: Float32, alone: bool) -> Float32:
        """Latent vectors (n, D) of features (n, P_v); `alone` as in `CCQ.project`."""
        if alone:  # as a stack, of which the matrix library gets one row after the other
            return self.map(x[:, None], alone=False)[:, 0]
        return self.preprocessing.apply(x) @ self.mapping


class CCQ:
    """Composite Correlation Quantization (Long, Cao, Wang, Yu, SIGIR 2016).

    Parameters
    ----------
    bits:
        Code length H, a multiple of 8 from 8 to 128: M = H / 8 codebooks of 256 codewords. An item takes M + 1 bytes,
        or M without a norm.
    dim:
        Latent dimension D; min(P_1, ..., P_V, H) by default, with the dimensions after preprocessing; ``full``: without
        H among these.
    weights:
        lambda_v by modality name, from 1e-6 to 1e6; 3 for ``text`` and 1 for any other by default.
    metric:
        Ranking of `CodeIndex`: ``cosine`` or ``euclidean``.
    norm:
        ``byte``: one more byte of each row tells the length of its reconstruction (section 3.3 of the paper). ``none``:
        codes are of directions alone, that is of latent vectors scaled to length one, and every reconstruction is taken
        to have that length too. That saves a byte and a look-up an item; only ``cosine`` can rank such codes, and
        there have to be two of them (16 bits).
    preprocess:
        Steps (see `ccq_core.preprocessing`) for all modalities, or by modality name.
    mapping:
        How features that were not in training are mapped: ``ridge`` refits the maps by ridge regression of the
        reconstructions on the features once training has converged, ``procrustes`` keeps the orthonormal R of training.
    mapping_ridge:
        Penalty of that regression, in units of the mean eigenvalue of the features' Gram matrix.
    effort:
        How hard to look for good codes, in training and afterwards: 0 is greedy residual coding, 1 adds three rounds of
        ICM, 2 starts them from a beam search, 3 from a wider one and adds iterated local search (see
        `ccq_core.quantizer`). With a beam, training also perturbs the codewords.
    iterations, tolerance:
        Training stops after so many iterations, or when one lowers the loss by less than `tolerance` of its value; with
        a beam, in the second half of the iterations at the earliest.
    codebook_ridge:
        Stabiliser of the codebook update, in units of the mean diagonal of its matrix.
    codebook_solver:
        Of that update: ``cholesky``, or ``cg``, conjugate gradients: slower, and without the (256 M)^2 numbers that are
        134 MB at 128 bits. Not with ``norm="none"``.
    start:
        First mappings: ``joint`` (principal axes of the heaviest modality, the others turned towards it) or
        ``identity`` (the paper's).
    seed:
        Seeds everything random. Same seed, data and thread count: same bytes.
    """

    def __init__(
        self,
        bits: int = 32,
        *,
        dim: int | Literal["full"] | None = None,
        weights: Mapping[str, float] | None = None,
        metric: str = "cosine",
        norm: str = "byte",
        preprocess: str | Sequence[str] | Mapping[str, str | Sequence[str]] = "zca,unit",
        mapping: str = "ridge",
        mapping_ridge: float = 0.03,
        effort: int = 2,
        iterations: int = 30,
        tolerance: float = 1e-4,
        codebook_ridge: float = 1e-4,
        codebook_solver: str = "cholesky",
        start: str = "joint",
        seed: int = 0,
    ) -> None:
        self.bits = bits
        self.dim = dim
        self.weights = weights
        self.metric = metric
        self.norm = norm
        self.preprocess = preprocess
        self.mapping = mapping
        self.mapping_ridge = mapping_ridge
        self.effort = effort
        self.iterations = iterations
        self.tolerance = tolerance
        self.codebook_ridge = codebook_ridge
        self.codebook_solver = codebook_solver
        self.start = start
        self.seed = seed
        self.modalities_: dict[str, Modality] = {}
        self.objects_: int | None = None

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """A model with the settings of a preset (`default`, `paper`), and with `changes` on top of them."""
        if name not in tuple(PRESETS):
            raise InvalidInputError(f"preset: expected {' or '.join(PRESETS)}, got {in_short(name)}")
        return cls(**{**PRESETS[name], **changes})

    # -- training ----------------------------------------------------------------------------------

    def fit(
        self,
        features: Features | Iterable[Features],
        *,
        callback: Callable[[Progress], None] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train by Algorithm 1 of the paper.

        Parameters
        ----------
        features:
            Modality name to (n, P_v) numbers. A row of NaN marks an object without that modality, so paired,
            semi-paired and unpaired objects go into one call.

            Or batches of them: a list, or any object that yields the same mappings each time it is iterated, such as
            those of `ccq_core.batches`, which read from disk. One batch is in memory at a time (and, in temporary
            files, a byte for each object and codebook and four for each object). The model is the same up to rounding.
        callback:
            Called after each iteration with a `Progress`; what it raises ends the training and leaves the model as it
            was.
        checkpoint:
            A file that is written after iterations, as often as takes a twentieth of the time, and that a later call
            with the same settings and features goes on from: the model is the same, to the last byte, as without an
            interruption. A file of another training is overwritten. It is left to the caller to remove it.

        Raises
        ------
        InvalidInputError
            Unusable parameters or features; `FeatureError` names modality and row.
        """
        self._check_settings()
        raw = open_source(features)
        self.check(raw.dims)
        if not raw.n:
            raise InvalidInputError("expected objects to train on, got none: the arrays have no rows")
        for name, count in raw.having.items():
            if count == 0:
                raise FeatureError(name, "no object has this modality, every row is NaN")
        steps = {name: self._steps(name) for name in raw.dims}
        weights = self._weights(tuple(raw.dims))
        preprocessing, grams = fit_preprocessing(steps, raw, self.seed)
        x, linear = _preprocessed(raw, preprocessing)
        widest = min(x.dims.values())
        dim = self.dim if isinstance(self.dim, int) else widest if self.dim == FULL else min(self.bits, widest)
        # Small matrices gain nothing from several threads, and on busy processors BLAS threads wait for each other.
        small = raw.n * (sum(raw.dims.values()) + 256 * self.bits // 8) < _BLAS_THREADS_FROM
        with threadpool_limits(1 if small else None, user_api="blas"), _room(raw, self.bits // 8) as room:
            objects = Objects(x, weights, linear, grams)
            state = None
            if checkpoint is not None:
                state = Checkpoint(checkpoint, self._described(raw), list(objects.grams.values()))
            trained = train(
                objects,
                room,
                dim=dim,
                effort=EFFORTS[self.effort],
                iterations=self.iterations,
                tolerance=self.tolerance,
                ridge=self.codebook_ridge,
                solver=self.codebook_solver,
                start=self.start,
                rng=np.random.default_rng(self.seed),
                callback=callback,
                checkpoint=state,
            )
            mappings = trained.mappings
            if self.mapping == "ridge":
                mappings = {
                    name: ridge(trained.grams[name], cross, self.mapping_ridge)
                    for name, cross in trained.crosses.items()
                }
            codebooks = trained.codebooks
            if self.norm == "none":
                codebooks = refit_to_directions(
                    objects, mappings, codebooks, EFFORTS[self.effort], self.codebook_ridge, _DIRECTION_ROUNDS
                )
            norm_levels = self._fit_norm_levels(objects, codebooks, mappings)
        if not ((np.abs(codebooks) <= MAX_ABS).all() and (norm_levels <= MAX_ABS**2).all()):
            raise InvalidInputError(f"features: codewords beyond {MAX_ABS:g}; the step 'unit' scales large features")
        self.modalities_ = {
            name: Modality(raw.dims[name], weights[name], preprocessing[name], mappings[name]) for name in raw.dims
        }
        self.codebooks_ = codebooks
        self.losses_ = trained.losses
        self.objects_ = raw.n
        self.norm_ = self.norm
        self.norm_levels_ = norm_levels
        self._restore()
        return self

    def check(self, dims: Mapping[str, int]) -> None:
        """Check the settings, and whether they fit features of these dimensions P_v by modality name; as `fit` does.

        Raises
        ------
        InvalidInputError
        """
        self._check_settings()
        for name in dims:
            self._check_name(name)
        self._check_against(dims, {name: self._steps(name) for name in dims})

    def _described(self, raw: Source) -> str:
        """All that decides what a training on these objects comes to, except their numbers."""
        return repr([self._settings(), raw.n, raw.dims, raw.having, raw.alone])

    def _fit_norm_levels(self, x: Objects, codebooks: Float32, mappings: Mapping[str, Float32]) -> Float32:
        """Levels for the reconstructions of the training objects, as each database would hold them."""
        some = sample(x.source, np.arange(0, x.source.n, max(1, -(-x.source.n // _NORM_SAMPLE))))
        quantizer = AdditiveQuantizer(codebooks)
        codes = [quantizer.encode(z, EFFORTS[self.effort]) for z in kinds(x, some, mappings)]
        return fit_levels(square_norms(codebooks, np.concatenate(codes)))

    # -- use ---------------------------------------------------------------------------------------

    @property
    def modalities(self) -> tuple[str, ...]:
        """Names of the modalities, in the order of training."""
        return tuple(self._fitted())

    @property
    def dims(self) -> dict[str, int]:
        """Feature dimension P_v of each modality."""
        return {name: modality.dim for name, modality in self._fitted().items()}

    @property
    def code_width(self) -> int:
        """Bytes per code row: M + 1, or M where the model stores no norm."""
        self._fitted()
        return len(self.codebooks_) + (self.norm_ == "byte")

    def project(self, features: Features | FeatureSet, *, alone: bool = False, clip: bool = False) -> Float32:
        """Latent vectors z (n, D) float32.

        An object with several modalities gets the weighted mean of their latent vectors. Same input rules and errors as
        `encode`; a `FeatureSet` of this model's modalities is taken as it is. `alone`: each object gets, to the last
        bit, what it gets without the others; otherwise a matrix library may sum in another order for more of them,
        which is faster for many. `clip`: numbers that are too large to be mapped become the largest that are not,
        instead of a FeatureError.
        """
        fitted = self._fitted()
        checked = features if isinstance(features, FeatureSet) else check_features(features, self.dims)
        z = np.empty((checked.n, self.codebooks_.shape[2]), dtype=np.float32)
        weights = {name: modality.weight for name, modality in fitted.items()}
        for lo in range(0, checked.n, _CHUNK_ROWS):
            part = slice(lo, lo + _CHUNK_ROWS)
            chunk = checked[part]
            with np.errstate(over="ignore", invalid="ignore"):
                latents = {name: fitted[name].map(array, alone) for name, array in chunk.arrays.items()}
            if clip:
                latents = {name: _clipped(latent) for name, latent in latents.items()}
            for name, latent in latents.items():
                far = chunk.present[name] & ~(np.abs(latent) < MAX_ABS).all(axis=1)
                if far.any():
                    raise FeatureError(
                        name, "numbers too far outside the training data to be mapped", lo + int(far.argmax())
                    )
            z[part] = fuse(latents, chunk, weights)[0]
        return z

    def encode(self, features: Features) -> Codes:
        """Codes of objects.

        Parameters
        ----------
        features:
            Modality name to (n, P_v) numbers, all with the same n; a row of NaN marks an absent modality. An object
            with several modalities is encoded as one fused item.

        Returns
        -------
        (n, M + 1) uint8: M codes and the norm byte; (n, M) where the model stores none.

        Raises
        ------
        NotFittedError
            Before `fit`.
        UnknownModalityError, FeatureError, InvalidInputError
            Features that do not fit the model.
        """
        return self.encode_latent(self.project(features))

    def encode_latent(self, z: Float32) -> Codes:
        """Code rows (n, `code_width`) uint8 of latent vectors (n, D) float32 from `project`."""
        self._fitted()
        if self.norm_ == "none":
            return self._quantizer.encode(directions(z), EFFORTS[self.effort])
        codes = self._quantizer.encode(z, EFFORTS[self.effort])
        norms = encode_norms(self.norm_levels_, square_norms(self.codebooks_, codes))
        return np.concatenate([codes, norms[:, None]], axis=1)

    def decode(self, codes: ArrayLike) -> Float32:
        """Reconstructions y (n, D) float32 in the latent space of code rows (n, `code_width`) uint8.

        Without norms these are directions.
        """
        self._fitted()
        rows = as_array(codes, lambda reason: InvalidInputError(f"codes: {reason}"))
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != self.code_width:
            raise InvalidInputError(
                f"codes: expected shape (n, {self.code_width}) of uint8, got {rows.shape} of {rows.dtype}"
            )
        return self._quantizer.decode(rows[:, : len(self.codebooks_)])

    def distance_tables(self, features: Features, *, metric: Metric | None = None) -> DistanceTables:
        """AQD look-up tables of queries (see `ccq_core.distances`); same input rules and errors as `encode`."""
        return self.distance_tables_latent(self.project(features), metric=metric)

    def distance_tables_latent(self, z: Float32, *, metric: Metric | None = None) -> DistanceTables:
        """AQD look-up tables of latent queries (q, D) float32."""
        return self._make_tables(z, self.ranking_metric(metric))

    def ranking_metric(self, metric: Metric | None = None) -> Metric:
        """The metric of a search: this one, or the model's own; InvalidInputError if the model cannot rank by it."""
        self._fitted()
        chosen = metric or check_metric(self.metric)
        self._make_tables.check(chosen)
        return chosen

    # -- the model file ----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The model file's bytes. The same model gives the same bytes."""
        self._fitted()
        return modelfile.dump(self._contents())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: to a temporary name, synced, then renamed. An existing file is replaced whole."""
        modelfile.write(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model file. Safe for files from strangers: it holds numbers and names, never code.

        Raises
        ------
        FileNotFoundError
            No such file.
        ModelFormatError, ModelTruncatedError, ModelCorruptError, ModelVersionError
            See `ccq_core.errors`.
        """
        with modelfile.naming(path):
            return cls.from_bytes(modelfile.read(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """A model from the bytes of a model file; raises what `load` raises."""
        contents = modelfile.parse(data)
        try:
            model = cls(**contents.parameters)
            model._check_settings()
            for modality in contents.modalities:
                cls._check_name(modality.name)
        except (TypeError, InvalidInputError) as error:
            raise ModelFormatError(f"the header does not describe a model: {error}") from None
        model.modalities_ = {
            m.name: Modality(m.dim, m.weight, Preprocessing(m.steps, m.arrays), m.mapping) for m in contents.modalities
        }
        model.codebooks_ = contents.codebooks
        model.norm_levels_ = contents.norm_levels
        model.losses_ = contents.losses
        model.objects_ = None
        model.norm_ = model.norm
        model._restore()
        return model

    def _contents(self) -> modelfile.Contents:
        self._check_settings()
        parameters = {**self._settings(), "bits": 8 * len(self.codebooks_), "norm": self.norm_}
        modalities = [
            modelfile.ModalityContents(name, m.dim, m.weight, m.preprocessing.steps, m.preprocessing.arrays, m.mapping)
            for name, m in self.modalities_.items()
        ]
        return modelfile.Contents(parameters, modalities, self.codebooks_, self.norm_levels_, self.losses_)

    # -- inside ------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in signature(CCQ).parameters}

    def _restore(self) -> None:
        """Derive what is computed from learned state."""
        self._quantizer = AdditiveQuantizer(self.codebooks_)
        self._make_tables = TableMaker(self.codebooks_, self.norm_levels_ if self.norm_ == "byte" else None)

    def _fitted(self) -> dict[str, Modality]:
        if not self.modalities_:
            raise NotFittedError("this model has not been trained: call fit, or load a model file")
        return self.modalities_

    def _weights(self, names: tuple[str, ...]) -> dict[str, float]:
        given = DEFAULT_WEIGHTS if self.weights is None else self.weights
        return {name: float(given.get(name, 1.0)) for name in names}

    def _steps(self, name: str) -> tuple[str, ...]:
        if isinstance(self.preprocess, Mapping):
            if name not in self.preprocess:
                raise InvalidInputError(f"preprocess: no entry for modality {name!r}")
            return check_steps(self.preprocess[name])
        return check_steps(self.preprocess)

    @staticmethod
    def _check_name(name: str) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name == PAIR:
            raise InvalidInputError(
                f"modality {in_short(name)}: expected a letter, then up to 63 letters, digits, '_' or '-'; "
                f"{PAIR!r} is reserved"
            )

    def _check_settings(self) -> None:
        """Check every setting that can be judged without data, and make it plain: what a model file can hold."""
        for name, (least, most) in _WHOLE_NUMBERS.items():
            setattr(self, name, check_whole(name, getattr(self, name), least, most))
        if self.bits % 8:
            raise InvalidInputError(f"bits: expected a multiple of 8, got {self.bits}")
        if isinstance(self.dim, str) and self.dim != FULL:
            raise InvalidInputError(f"dim: expected a whole number from 1 up, or {FULL!r}, got {in_short(self.dim)}")
        if self.dim is not None and not isinstance(self.dim, str):
            self.dim = check_whole("dim", self.dim, 1)
        for name, (lowest, highest) in _REAL_NUMBERS.items():
            setattr(self, name, check_real(name, getattr(self, name), lowest, highest))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise InvalidInputError(f"{name}: expected {' or '.join(choices)}, got {in_short(value)}")
            setattr(self, name, str(value))
        if self.norm == "none" and (self.metric != "cosine" or self.bits < 16):
            raise InvalidInputError(
                f"norm: 'none' keeps directions in 16 bits and more, ranked by cosine; got {self.bits} bits and "
                f"{self.metric!r}"
            )
        if self.norm == "none" and self.codebook_solver != "cholesky":
            raise InvalidInputError("norm: 'none' needs codebook_solver='cholesky'")
        if self.weights is not None:
            if not isinstance(self.weights, Mapping):
                raise InvalidInputError(f"weights: expected numbers by modality, got {in_short(self.weights)}")
            self.weights = {
                name: check_weight(f"weights[{in_short(name)}]", weight) for name, weight in self.weights.items()
            }
        self.preprocess = plain_steps(self.preprocess)

    def _check_against(self, dims: Mapping[str, int], steps: Mapping[str, Sequence[str]]) -> None:
        """Check the settings that depend on the data."""
        widest = min(output_dim(steps[name], dim) for name, dim in dims.items())
        if isinstance(self.dim, int) and self.dim > widest:
            raise InvalidInputError(
                f"dim: expected 1 to {widest}, the smallest feature dimension after preprocessing, got {self.dim}"
            )
        for name in self.weights or {}:
            if name not in dims:
                raise InvalidInputError(f"weights: {name!r} is no modality of these features ({', '.join(dims)})")


def _clipped(latents: Float32) -> Float32:
    most = np.nextafter(np.float32(MAX_ABS), np.float32(0))
    finite = np.nan_to_num(latents, nan=0.0, posinf=most, neginf=-most)
    return np.asarray(np.clip(finite, -most, most))


def _preprocessed(
    raw: InMemory | Streamed, preprocessing: Mapping[str, Preprocessing]
) -> tuple[Source, dict[str, Float32]]:
    """Training objects, and matrices that they are still to be multiplied with (see `Objects`)."""
    split = {name: steps.split() for name, steps in preprocessing.items()}
    cheap = {name: steps for name, (steps, _) in split.items()}
    linear = {name: matrix for name, (_, matrix) in split.items() if matrix is not None}
    dims = {name: output_dim(steps.steps, raw.dims[name]) for name, steps in preprocessing.items()}
    return raw.map(lambda batch: preprocess(batch, cheap), dims), linear


@contextmanager
def _room(raw: InMemory | Streamed, m: int) -> Iterator[Room]:
    """Room for all objects: where these are not in memory, neither is it."""
    if isinstance(raw, InMemory):
        yield Room(np.zeros((raw.n, m), dtype=np.uint8), np.zeros(raw.n, dtype=np.float32))
        return
    with tempfile.TemporaryFile() as codes, tempfile.TemporaryFile() as weights:
        _allocate(codes, raw.n * m)
        _allocate(weights, raw.n * 4)
        yield Room(
            np.memmap(codes, dtype=np.uint8, shape=(raw.n, m), mode="r+"),
            np.memmap(weights, dtype=np.float32, shape=(raw.n,), mode="r+"),
        )


def _allocate(file: IO[bytes], size: int) -> None:
    """Zeros on disk: a mapped file that finds the disk full later would end the process."""
    zeros = bytes(1 << 20)
    try:
        for lo in range(0, size, len(zeros)):
            file.write(zeros[: size - lo])
        file.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from None
