"""Preprocessing of one modality: steps that are fitted in training and travel with the model.

A preprocessing is a sequence of step names, applied from left to right:

- ``l2``: divide each row by its Euclidean norm (a zero row stays zero);
- ``sqrt``: signed square root of each number, which tames histograms and counts;
- ``center``: subtract the training mean of each dimension;
- ``zscore``: subtract the mean, divide by the standard deviation (constant dimensions become 0);
- ``zca``: subtract the mean, multiply by (S + ridge * tr(S)/P * I)^(-1/2), S the covariance: decorrelated, unit
  variance, rotated as little as possible. The ridge keeps rank-deficient features (rows that sum to one) finite;
- ``unit``: one factor for the whole modality, so that its mean squared row norm in training is 1;
- ``rff``: random Fourier features (Rahimi and Recht, NIPS 2007): sqrt(2/F) cos(x W + b) with F = 512 random waves,
  whose inner products are near the Gaussian kernel exp(-|x - y|^2 / (2 s^2)); s^2 is the features' total variance, so
  two training rows are about sqrt(2) s apart. Linear maps of these are nonlinear maps of the features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError
from ccq_core.features import MIN_ABS, FeatureSet, Float32, in_short
from ccq_core.source import Source

# Half whitened: an eigenvalue at the mean is halved, not set to one. Chosen by measurement, see docs/defaults.md.
ZCA_RIDGE = 1.0
FOURIER = 512
_MAX_STEPS = 16
_ROWS = 1 << 12  # rows that are float64 at a time
Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Preprocessing:
    """A fitted sequence of steps for one modality.

    Attributes
    ----------
    steps:
        Step names, in the order of application.
    arrays:
        Fitted arrays of each step, by name, float32: ``mean`` (P,), ``scale`` (P,) or (1,), ``matrix`` (P, P),
        ``waves`` (P, F), ``phases`` (F,).
    """

    steps: tuple[str, ...]
    arrays: tuple[dict[str, Float32], ...]

    def apply(self, x: Float32) -> Float32:
        """Transform features (n, P) float32 to (n, Q) float32, Q their `output_dim`; or (n, 1, P) to (n, 1, Q)."""
        for step, arrays in zip(self.steps, self.arrays, strict=True):
            x = _STEPS[step].apply(x, arrays)
        return x

    def split(self) -> tuple[Preprocessing, Float32 | None]:
        """The same in two parts: steps that are cheap, then a matrix (P, P) from the right, or None.

        Whoever only needs products with what comes out can leave the P x P product of each vector with it to them.
        """
        matrix: Float32 | None = None
        for at in range(len(self.steps) - 1, -1, -1):
            step, arrays = self.steps[at], self.arrays[at]
            if step == "zca":
                matrix = arrays["matrix"] if matrix is None else arrays["matrix"] * matrix
                cheap = Preprocessing((*self.steps[:at], "center"), (*self.arrays[:at], {"mean": arrays["mean"]}))
                return cheap, matrix
            if step != "unit":
                break
            matrix = arrays["scale"] if matrix is None else arrays["scale"] * matrix
        return self, None


def check_steps(steps: str | Sequence[str]) -> tuple[str, ...]:
    """Step names as a tuple; a string is split at commas.

    Raises
    ------
    InvalidInputError
        No sequence, a name that is no step, or very many.
    """
    if not isinstance(steps, Sequence):
        raise InvalidInputError(f"preprocess: expected names of steps, got {in_short(steps)}")
    names = tuple(part.strip() for part in steps.split(",")) if isinstance(steps, str) else tuple(steps)
    for name in names:
        if not isinstance(name, str) or name not in {"", "none", *_STEPS}:
            raise InvalidInputError(f"preprocess: unknown step {in_short(name)}; known are none, {', '.join(_STEPS)}")
    names = tuple(str(name) for name in names if name not in ("", "none"))
    if len(names) > _MAX_STEPS:
        raise InvalidInputError(f"preprocess: expected at most {_MAX_STEPS} steps, got {len(names)}")
    return names


def plain_steps(steps: str | Sequence[str] | Mapping[str, str | Sequence[str]]) -> str | dict[str, str]:
    """The parameter `preprocess` of `CCQ` as it is kept and stored: names joined by commas, or those by modality."""
    if isinstance(steps, Mapping):
        return {name: ",".join(check_steps(part)) for name, part in steps.items()}
    return ",".join(check_steps(steps))


def fit_preprocessing(
    steps: Mapping[str, Sequence[str]], source: Source, seed: int
) -> tuple[dict[str, Preprocessing], dict[str, Float64]]:
    """Fit the steps of each modality, each on the output of the ones before it.

    That takes a pass over the objects for each step whose input's moments do not follow from those of a step before.

    Parameters
    ----------
    steps:
        By modality name.
    source:
        Training objects.
    seed:
        Seeds what is random in a step.

    Returns
    -------
    The fitted steps; and the sums x_n x_n^T (P, P) of their output for the modalities for which they followed too.
    """
    fitted = {name: Preprocessing((), ()) for name in steps}
    moments: dict[str, Moments] = {}
    dims = dict(source.dims)
    rngs = {name: np.random.default_rng([seed, i]) for i, name in enumerate(steps)}
    for at in range(max(map(len, steps.values()))):
        pending = {name: names[at] for name, names in steps.items() if at < len(names)}
        needed = {
            name: step == "zca"
            for name, step in pending.items()
            if _STEPS[step].shapes and (name not in moments or (step == "zca" and moments[name].covariance is None))
        }
        if needed:
            sums = {name: _Sums(dims[name], covariance) for name, covariance in needed.items()}
            for batch in source:
                for name, total in sums.items():
                    total.add(fitted[name].apply(batch.arrays[name][batch.present[name]]))
            moments |= {name: total.moments() for name, total in sums.items()}
        for name, step in pending.items():
            does = _STEPS[step]
            arrays = does.fit(moments[name], rngs[name]) if does.shapes else {}
            fitted[name] = Preprocessing((*fitted[name].steps, step), (*fitted[name].arrays, arrays))
            dims[name] = output_dim([step], dims[name])
            follow = does.follow
            if follow is None:
                moments.pop(name, None)
            else:
                moments[name] = follow(moments[name], arrays)
    grams = {
        name: source.having[name] * (known.covariance + np.outer(known.mean, known.mean))
        for name, known in moments.items()
        if known.covariance is not None
    }
    return fitted, grams


def preprocess(features: FeatureSet, preprocessing: Mapping[str, Preprocessing]) -> FeatureSet:
    """Transformed features; rows of absent modalities stay zero."""
    arrays = {}
    for name, array in features.arrays.items():
        arrays[name] = preprocessing[name].apply(array)
        if arrays[name] is not array:
            arrays[name][~features.present[name]] = 0.0
    return FeatureSet(arrays, features.present, features.n)


def array_shapes(step: str, dim: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the arrays that a step stores for features of dimension `dim`; for the model file."""
    sizes = {"P": dim, "F": FOURIER, "1": 1}
    return {name: tuple(sizes[axis] for axis in axes) for name, axes in _STEPS[step].shapes.items()}


def output_dim(steps: Sequence[str], dim: int) -> int:
    """Dimension of what steps make of features of dimension `dim`."""
    return FOURIER if "rff" in steps else dim


@dataclass(frozen=True)
class Moments:
    """What is known of the numbers that go into a step: mean and variance (P,), covariance (P, P) or None; float64."""

    mean: Float64
    variance: Float64
    covariance: Float64 | None

    def scaled(self, scale: Float64, less: Float32 | float = 0.0) -> Moments:
        """Of the numbers less (P,), times (P,) or (1,). What float32 has rounded off a mean is left over."""
        covariance = None if self.covariance is None else self.covariance * scale[:, None] * scale
        return Moments((self.mean - less) * scale, self.variance * np.square(scale), covariance)


class _Sums:
    """Moments of rows that come in parts.

    Sums are of differences to the mean of the first part, which is near to the mean of all, so that little cancels.
    """

    def __init__(self, dim: int, covariance: bool) -> None:
        self._n = 0
        self._covariance = covariance
        self._shift = np.zeros(dim)
        self._first = np.zeros(dim)
        self._second = np.zeros((dim, dim) if covariance else dim)

    def add(self, x: Float32) -> None:
        """Take (n, P) float32 in."""
        if self._n == 0 and len(x):
            self._shift = x.mean(axis=0, dtype=np.float64)
        for lo in range(0, len(x), _ROWS):
            part = x[lo : lo + _ROWS] - self._shift
            self._first += part.sum(axis=0)
            self._second += part.T @ part if self._covariance else np.einsum("ij,ij->j", part, part)
        self._n += len(x)

    def moments(self) -> Moments:
        """Of all rows so far, of which there is at least one."""
        apart = self._first / self._n
        second = self._second / self._n
        covariance = second - np.outer(apart, apart) if self._covariance else None
        variance = (np.diagonal(second) if self._covariance else second) - np.square(apart)
        return Moments(self._shift + apart, np.maximum(variance, 0.0), covariance)


@dataclass(frozen=True)
class _Step:
    fit: Callable[[Moments, np.random.Generator], dict[str, Float32]]
    apply: Callable[[Float32, dict[str, Float32]], Float32]
    follow: Callable[[Moments, dict[str, Float32]], Moments] | None  # moments of what comes out, where they are known
    shapes: dict[str, str]  # array name -> axes: "P", the feature dimension, "F", the waves' number, "1", a scalar


def _nothing(_: Moments, __: np.random.Generator) -> dict[str, Float32]:
    return {}


def _l2(x: Float32, _: dict[str, Float32]) -> Float32:
    norms = np.sqrt(np.einsum("...j,...j->...", x, x, dtype=np.float64))[..., None]
    return (x / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def _sqrt(x: Float32, _: dict[str, Float32]) -> Float32:
    return np.asarray(np.sign(x) * np.sqrt(np.abs(x)), dtype=np.float32)


def _fit_mean(x: Moments, _: np.random.Generator) -> dict[str, Float32]:
    return {"mean": x.mean.astype(np.float32)}


def _follow_center(x: Moments, a: dict[str, Float32]) -> Moments:
    return x.scaled(np.ones(1), a["mean"])


def _center(x: Float32, a: dict[str, Float32]) -> Float32:
    return x - a["mean"]


def _fit_zscore(x: Moments, _: np.random.Generator) -> dict[str, Float32]:
    mean = x.mean
    std = np.sqrt(x.variance)
    # A dimension that only carries the rounding of its mean is constant.
    constant = std <= np.maximum(1e-6 * np.abs(mean), MIN_ABS)
    scale = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, std))
    return {"mean": mean.astype(np.float32), "scale": scale.astype(np.float32)}


def _follow_zscore(x: Moments, a: dict[str, Float32]) -> Moments:
    return x.scaled(a["scale"].astype(np.float64), a["mean"])


def _zscore(x: Float32, a: dict[str, Float32]) -> Float32:
    return (x - a["mean"]) * a["scale"]


def _fit_zca(x: Moments, _: np.random.Generator) -> dict[str, Float32]:
    values, vectors = np.linalg.eigh(np.diag(x.variance) if x.covariance is None else x.covariance)
    values = np.maximum(values, 0.0)
    floor = ZCA_RIDGE * values.mean()
    inverse = 1.0 / np.sqrt(values + floor) if floor > MIN_ABS**2 else np.zeros_like(values)
    return {"mean": x.mean.astype(np.float32), "matrix": ((vectors * inverse) @ vectors.T).astype(np.float32)}


def _follow_zca(x: Moments, a: dict[str, Float32]) -> Moments:
    matrix = a["matrix"].astype(np.float64)
    covariance = matrix.T @ (np.diag(x.variance) if x.covariance is None else x.covariance) @ matrix
    return Moments((x.mean - a["mean"]) @ matrix, np.diagonal(covariance).copy(), covariance)


def _zca(x: Float32, a: dict[str, Float32]) -> Float32:
    return np.asarray((x - a["mean"]) @ a["matrix"], dtype=np.float32)


def _fit_unit(x: Moments, _: np.random.Generator) -> dict[str, Float32]:
    energy = float((x.variance + np.square(x.mean)).sum())
    return {"scale": np.array([1.0 / np.sqrt(energy) if energy > MIN_ABS**2 else 0.0], dtype=np.float32)}


def _follow_unit(x: Moments, a: dict[str, Float32]) -> Moments:
    return x.scaled(a["scale"].astype(np.float64))


def _unit(x: Float32, a: dict[str, Float32]) -> Float32:
    return x * a["scale"]


def _fit_rff(x: Moments, rng: np.random.Generator) -> dict[str, Float32]:
    energy = float(x.variance.sum())
    waves = rng.standard_normal((len(x.mean), FOURIER)) * (1.0 / np.sqrt(energy) if energy > MIN_ABS**2 else 0.0)
    phases = rng.uniform(0.0, 2 * np.pi, FOURIER)
    return {"waves": waves.astype(np.float32), "phases": phases.astype(np.float32)}


def _rff(x: Float32, a: dict[str, Float32]) -> Float32:
    angles = x @ a["waves"] + a["phases"]
    return np.asarray(np.cos(angles, out=angles) * np.float32(np.sqrt(2.0 / FOURIER)), dtype=np.float32)


_STEPS = {
    "l2": _Step(_nothing, _l2, None, {}),
    "sqrt": _Step(_nothing, _sqrt, None, {}),
    "center": _Step(_fit_mean, _center, _follow_center, {"mean": "P"}),
    "zscore": _Step(_fit_zscore, _zscore, _follow_zscore, {"mean": "P", "scale": "P"}),
    "zca": _Step(_fit_zca, _zca, _follow_zca, {"mean": "P", "matrix": "PP"}),
    "unit": _Step(_fit_unit, _unit, _follow_unit, {"scale": "1"}),
    "rff": _Step(_fit_rff, _rff, None, {"waves": "PF", "phases": "F"}),
}

STEPS = tuple(_STEPS)
