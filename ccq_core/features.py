"""Arguments and feature arrays: checked once at the boundary, plain numbers and float32 behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ccq_core.errors import FeatureError, InvalidInputError, UnknownModalityError

Float32 = NDArray[np.float32]
Features = Mapping[str, ArrayLike]

# float32 squares stay finite below this magnitude, whatever the dimension; real features are far smaller.
MAX_ABS = 1e15
# Smaller magnitudes than this are zero: their inverse would leave float32.
MIN_ABS = 1e-30


@dataclass(frozen=True)
class FeatureSet:
    """Features of `n` objects in one or more modalities, checked.

    Attributes
    ----------
    arrays:
        Modality name to an array (n, P_v) float32. Rows of absent objects hold zeros.
    present:
        Modality name to a mask (n,) bool: which objects have that modality. Every object has at least one.
    n:
        Number of objects.
    """

    arrays: dict[str, Float32]
    present: dict[str, NDArray[np.bool_]]
    n: int

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> FeatureSet:
        """Some of the objects; views of the arrays where `rows` is a slice."""
        present = {name: mask[rows] for name, mask in self.present.items()}
        arrays = {name: array[rows] for name, array in self.arrays.items()}
        return FeatureSet(arrays, present, len(next(iter(present.values()))))

    @property
    def dims(self) -> dict[str, int]:
        """Feature dimension P_v of each modality."""
        return {name: array.shape[1] for name, array in self.arrays.items()}


def check_whole(name: str, value: object, least: int, most: float = math.inf) -> int:
    """A whole number of this range as a plain int; InvalidInputError for anything else, bool and 4.0 included."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int) or not least <= plain <= most:
        end = "up" if most == math.inf else f"to {most}"
        raise InvalidInputError(f"{name}: expected a whole number from {least} {end}, got {in_short(value)}")
    return plain


def check_real(name: str, value: object, least: float, most: float) -> float:
    """A number of this range as a plain float; InvalidInputError for anything else."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not least <= plain <= most:
        raise InvalidInputError(f"{name}: expected a number from {least:g} to {most:g}, got {in_short(value)}")
    return float(plain)


def check_weight(name: str, value: object) -> float:
    """A modality's lambda as a plain float; InvalidInputError for one that would drown the others, or vanish."""
    return check_real(name, value, 1e-6, 1e6)


def in_short(value: object) -> str:
    """The value for a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # an int of more digits than Python writes
        text = "a huge number"
    return text if len(text) <= 80 else f"{text[:80]}..."


def as_array(values: ArrayLike, error: Callable[[str], InvalidInputError]) -> NDArray[Any]:
    """The array that was given, or that lists make; `error` of the reason is raised where there is none."""
    if isinstance(values, np.ma.MaskedArray):
        raise error("expected a plain array, got a masked one: rows of NaN mark what is absent")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as reason:
        raise error(f"expected an array ({reason})") from None


def check_table(modality: str, values: ArrayLike, dim: int | None = None) -> NDArray[Any]:
    """What `check_array` checks of an array without looking at its numbers: (n, P) real numbers of any dtype."""
    array = as_array(values, partial(FeatureError, modality))
    if array.dtype.kind not in "fiu":
        raise FeatureError(modality, f"expected numbers, got an array of {in_short(str(array.dtype))}")
    if array.ndim != 2:
        hint = "; for one object pass features[None, :]" if array.ndim == 1 else ""
        raise FeatureError(modality, f"expected shape (n, P), got {array.shape}{hint}")
    if array.shape[1] == 0:
        raise FeatureError(modality, "expected at least one dimension, got none")
    if dim is not None and array.shape[1] != dim:
        raise FeatureError(modality, f"expected {dim} numbers, got {array.shape[1]}")
    return array


def check_array(modality: str, values: ArrayLike, dim: int | None = None) -> tuple[Float32, NDArray[np.bool_]]:
    """Check one modality's features.

    Parameters
    ----------
    modality:
        Name for the messages.
    values:
        (n, P) numbers. A row that is all NaN marks an object without this modality.
    dim:
        The P that is expected, if one is.

    Returns
    -------
    (n, P) float32 with zeros in absent rows, the given array itself where it is that already; and the (n,) mask of
    present rows.

    Raises
    ------
    FeatureError
        Not two-dimensional, not numeric, wrong P, partly NaN, infinite, or beyond what float32 can square.
    """
    array = check_table(modality, values, dim)
    if array.dtype.itemsize < 4:
        array = array.astype(np.float32)  # exact; and comparisons below need float32's range
    elif array.dtype.kind != "f":
        array = array.astype(np.float64)  # the least int64 is its own absolute value
    # The range is checked before the cast, so a float64 of 1e300 is named instead of becoming infinite. Extremes tell
    # of all numbers at once, without arrays beside the one given: NaN is no extreme, but shows in them.
    present: NDArray[np.bool_] = np.ones(array.shape[0], dtype=bool)
    if array.size == 0 or (array.min() >= -MAX_ABS and array.max() <= MAX_ABS):
        return np.ascontiguousarray(array, dtype=np.float32), present
    with np.errstate(invalid="ignore"):
        fine = np.less_equal(np.abs(array), MAX_ABS)
    present = np.asarray(~np.isnan(array).all(axis=1))
    bad = np.flatnonzero(present & ~fine.all(axis=1))
    if bad.size:
        row = int(bad[0])
        column = int(np.flatnonzero(~fine[row])[0])
        value = array[row, column]
        why = "NaN in a row that is not all NaN" if np.isnan(value) else f"{value} is infinite or beyond 1e15"
        raise FeatureError(modality, f"number {column}: {why}", row=row)
    out = array.astype(np.float32)
    out[~present] = 0.0
    return out, present


def check_features(
    features: Features, dims: Mapping[str, int] | None = None, *, others: bool = False, first: int = 0
) -> FeatureSet:
    """Check a mapping from modality name to features (see `check_array`).

    Parameters
    ----------
    features:
        Modality name to (n, P_v); n is the same for all.
    dims:
        Modalities that are allowed, and their P_v. None allows any (training).
    others:
        Other modalities than these are allowed too.
    first:
        Number of the first object, for messages.

    Raises
    ------
    InvalidInputError
        No modality, unequal n, or an object with no modality at all.
    UnknownModalityError
        A name that is not in `dims`.
    FeatureError
        From `check_array`.
    """
    if not isinstance(features, Mapping):
        raise InvalidInputError(f"features: expected a mapping from modality to array, got {type(features).__name__}")
    if not features:
        raise InvalidInputError("features: expected at least one modality, got none")
    arrays: dict[str, Float32] = {}
    present: dict[str, NDArray[np.bool_]] = {}
    for name, values in features.items():
        if dims is not None and name not in dims and not others:
            raise UnknownModalityError(name, tuple(dims))
        arrays[name], present[name] = check_array(name, values, None if dims is None else dims.get(name))
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidInputError(
            f"features: every modality needs the same number of rows, got {sizes}; mark absent ones by rows of NaN"
        )
    empty = np.flatnonzero(~np.logical_or.reduce(list(present.values())))
    if empty.size:
        raise InvalidInputError(
            f"features: object {first + int(empty[0])} has no modality, every one of its rows is NaN; leave it out"
        )
    return FeatureSet(arrays, present, next(iter(sizes.values())))
