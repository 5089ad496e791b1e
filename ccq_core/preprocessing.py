"""Preprocessing of one modality: steps that are fitted in training and travel with the model.

A preprocessing is a sequence of step names, applied from left to right:

- ``l2``: divide each row by its Euclidean norm (a zero row stays zero);
- ``sqrt``: signed square root of each number, which tames histograms and counts;
- ``center``: subtract the training mean of each dimension;
- ``zscore``: subtract the mean, divide by the standard deviation (constant dimensions become 0);
- ``zca``: subtract the mean, multiply by (S + ridge * tr(S)/P * I)^(-1/2), S the covariance: decorrelated, unit
  variance, rotated as little as possible. The ridge keeps rank-deficient features (rows that sum to one) finite;
- ``unit``: one factor for the whole modality, so that its mean squared row norm in training is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ccq_core.errors import InvalidInputError
from ccq_core.features import MIN_ABS, Float32, in_short

# Half whitened: an eigenvalue at the mean is halved, not set to one. Chosen by measurement, see docs/defaults.md.
ZCA_RIDGE = 1.0
_MAX_STEPS = 16


@dataclass(frozen=True)
class Preprocessing:
    """A fitted sequence of steps for one modality.

    Attributes
    ----------
    steps:
        Step names, in the order of application.
    arrays:
        Fitted arrays of each step, by name: ``mean`` (P,), ``scale`` (P,) or scalar, ``matrix`` (P, P); float32.
    """

    steps: tuple[str, ...]
    arrays: tuple[dict[str, Float32], ...]

    def apply(self, x: Float32) -> Float32:
        """Transform features (n, P) float32 to (n, P) float32."""
        for step, arrays in zip(self.steps, self.arrays, strict=True):
            x = _STEPS[step].apply(x, arrays)
        return x


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


def fit_preprocessing(steps: Sequence[str], x: Float32) -> Preprocessing:
    """Fit each step on the output of the ones before it, on training features (n, P) float32."""
    fitted: list[dict[str, Float32]] = []
    for step in steps:
        arrays = _STEPS[step].fit(x)
        fitted.append(arrays)
        x = _STEPS[step].apply(x, arrays)
    return Preprocessing(tuple(steps), tuple(fitted))


def array_shapes(step: str, dim: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the arrays that a step stores for features of dimension `dim`; for the model file."""
    return {name: tuple(dim if axis == "P" else 1 for axis in axes) for name, axes in _STEPS[step].shapes.items()}


@dataclass(frozen=True)
class _Step:
    fit: Callable[[Float32], dict[str, Float32]]
    apply: Callable[[Float32, dict[str, Float32]], Float32]
    shapes: dict[str, str]  # array name -> axes, "P" for the feature dimension and "1" for a scalar


def _nothing(_: Float32) -> dict[str, Float32]:
    return {}


def _l2(x: Float32, _: dict[str, Float32]) -> Float32:
    norms = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float64))[:, None]
    return (x / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def _sqrt(x: Float32, _: dict[str, Float32]) -> Float32:
    return np.asarray(np.sign(x) * np.sqrt(np.abs(x)), dtype=np.float32)


def _fit_mean(x: Float32) -> dict[str, Float32]:
    return {"mean": x.mean(axis=0, dtype=np.float64).astype(np.float32)}


def _center(x: Float32, a: dict[str, Float32]) -> Float32:
    return x - a["mean"]


def _fit_zscore(x: Float32) -> dict[str, Float32]:
    mean = x.mean(axis=0, dtype=np.float64)
    std = x.std(axis=0, dtype=np.float64)
    # A dimension that only carries the rounding of its mean is constant.
    constant = std <= np.maximum(1e-6 * np.abs(mean), MIN_ABS)
    scale = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, std))
    return {"mean": mean.astype(np.float32), "scale": scale.astype(np.float32)}


def _zscore(x: Float32, a: dict[str, Float32]) -> Float32:
    return (x - a["mean"]) * a["scale"]


def _fit_zca(x: Float32) -> dict[str, Float32]:
    mean = x.mean(axis=0, dtype=np.float64)
    centred = x - mean
    covariance = centred.T @ centred / max(len(x), 1)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    floor = ZCA_RIDGE * values.mean()
    inverse = 1.0 / np.sqrt(values + floor) if floor > MIN_ABS**2 else np.zeros_like(values)
    return {"mean": mean.astype(np.float32), "matrix": ((vectors * inverse) @ vectors.T).astype(np.float32)}


def _zca(x: Float32, a: dict[str, Float32]) -> Float32:
    return np.asarray((x - a["mean"]) @ a["matrix"], dtype=np.float32)


def _fit_unit(x: Float32) -> dict[str, Float32]:
    energy = float(np.einsum("ij,ij->", x, x, dtype=np.float64)) / max(len(x), 1)
    return {"scale": np.array([1.0 / np.sqrt(energy) if energy > MIN_ABS**2 else 0.0], dtype=np.float32)}


def _unit(x: Float32, a: dict[str, Float32]) -> Float32:
    return x * a["scale"]


_STEPS = {
    "l2": _Step(_nothing, _l2, {}),
    "sqrt": _Step(_nothing, _sqrt, {}),
    "center": _Step(_fit_mean, _center, {"mean": "P"}),
    "zscore": _Step(_fit_zscore, _zscore, {"mean": "P", "scale": "P"}),
    "zca": _Step(_fit_zca, _zca, {"mean": "P", "matrix": "PP"}),
    "unit": _Step(_fit_unit, _unit, {"scale": "1"}),
}

STEPS = tuple(_STEPS)
