"""Feature vectors as clients send them: checked for many objects at once, each fault named by its place."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core import CCQ
from ccq_core.errors import FeatureError, UnknownModalityError
from ccq_core.features import FeatureSet, Float32, check_array, check_features
from service.errors import CoreInputError, Fault
from service.places import Location, shorten

_NUMBERS = frozenset((int, float))
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Vectors:
    """Checked feature vectors of n objects.

    Attributes
    ----------
    features:
        Arrays and masks by modality, for all modalities that any object has.
    locate:
        From an object's number to the place of its features in the request.
    model_name:
        For messages.
    """

    features: FeatureSet
    locate: Callable[[int], Location]
    model_name: str

    def marked(self, rows: Rows) -> dict[str, Float32]:
        """Features of some objects as `CCQ.encode` and `CCQ.project` take them: rows of NaN for absent modalities.

        Parameters
        ----------
        rows:
            Their numbers, strictly ascending.
        """
        marked = {}
        for modality, array in self.features.arrays.items():
            present = self.features.present[modality][rows]
            if present.all():
                marked[modality] = array if len(rows) == len(array) else array[rows]
            elif present.any():
                marked[modality] = np.where(present[:, None], array[rows], np.float32(np.nan))
        return marked

    @contextmanager
    def faults_named(self, rows: Rows) -> Iterator[None]:
        """Turn a FeatureError about `rows` into an error that names the place in the request.

        Raises
        ------
        CoreInputError
            With the FeatureError as its cause.
        """
        try:
            yield
        except FeatureError as error:
            if error.row is None:
                raise
            raise _located(error, (*self.locate(int(rows[error.row])), error.modality), self.model_name) from None


def read_vectors(
    objects: Sequence[Mapping[str, Any]], locate: Callable[[int], Location], model: CCQ, model_name: str
) -> Vectors:
    """Check feature vectors.

    Parameters
    ----------
    objects:
        For each object its feature vectors by modality: lists of numbers, base64 of little-endian float32, or
        arrays (P,) float32.
    locate:
        From an object's number to the place of its features in the request.
    model, model_name:
        The model that they are for.

    Raises
    ------
    CoreInputError
        An unknown modality, or a vector with something that is no number, NaN, infinite, or of another length.
    """
    dims = model.dims
    for i, given in enumerate(objects):
        if not given.keys() <= dims.keys():
            name = next(name for name in given if name not in dims)
            known = ", ".join(dims)
            reason = f"unknown modality, expected {known} (model {model_name})"
            raise CoreInputError(UnknownModalityError(name, tuple(dims)), Fault.at((*locate(i), name), reason))
    arrays: dict[str, Float32] = {}
    masks: dict[str, NDArray[np.bool_]] = {}
    for modality, dim in dims.items():
        rows = [i for i, given in enumerate(objects) if modality in given]
        if not rows:
            continue
        try:
            stacked = _stack(modality, [objects[i][modality] for i in rows], dim)
        except FeatureError as error:
            row = rows[error.row or 0]
            raise _located(error, (*locate(row), modality), model_name) from None
        if len(rows) == len(objects):
            arrays[modality], masks[modality] = stacked, np.ones(len(objects), dtype=bool)
            continue
        arrays[modality] = np.zeros((len(objects), dim), dtype=np.float32)
        arrays[modality][rows] = stacked
        masks[modality] = np.zeros(len(objects), dtype=bool)
        masks[modality][rows] = True
    return Vectors(FeatureSet(arrays, masks, len(objects)), locate, model_name)


def vectors_of(
    arrays: Mapping[str, NDArray[Any]], locate: Callable[[int], Location], model: CCQ, model_name: str
) -> Vectors:
    """Check feature vectors that are arrays (n, P) by modality already, with rows of NaN for absent modalities.

    Raises
    ------
    CoreInputError
        What `read_vectors` refuses, and an object that has no modality.
    """
    dims = model.dims
    try:
        return Vectors(check_features(arrays, dims), locate, model_name)
    except UnknownModalityError as error:
        reason = f"unknown modality {shorten(error.modality)}, expected {', '.join(dims)} (model {model_name})"
        raise CoreInputError(error, Fault.at(locate(0), reason)) from None
    except FeatureError as error:
        raise _located(error, (*locate(error.row or 0), error.modality), model_name) from None


def _stack(modality: str, values: Sequence[Any], dim: int) -> Float32:
    """Vectors of one modality as one array (n, dim); FeatureError names the row."""
    array = np.empty((len(values), dim), dtype=np.float64)
    for row, value in enumerate(values):
        if isinstance(value, list) and len(value) == dim and _NUMBERS.issuperset(map(type, value)):
            array[row] = value
        elif isinstance(value, str):
            array[row] = _from_base64(modality, value, dim, row)
        elif isinstance(value, np.ndarray):  # an encoder made it, see `service.encoders.raw`
            array[row] = value
        else:
            raise FeatureError(modality, _why_not(modality, value, dim), row)
    checked, present = check_array(modality, array, dim)
    if not present.all():  # to the core a row of NaN is an absent modality; a client says that by leaving it out
        raise FeatureError(modality, "every number is NaN; leave the modality out instead", int(present.argmin()))
    return checked


def _from_base64(modality: str, text: str, dim: int, row: int) -> NDArray[np.float32]:
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        none = f"the collection has no encoder that takes a string for {shorten(modality)}"
        raise FeatureError(modality, f"expected numbers or base64, got {shorten(text)}: {error}; {none}", row) from None
    if len(data) % 4:
        raise FeatureError(
            modality, f"expected {4 * dim} bytes of float32 in base64, got {len(data)}, which is no multiple of 4", row
        )
    if len(data) != 4 * dim:
        double = ", or float64: base64 is of float32" if len(data) == 8 * dim else ""
        raise FeatureError(modality, f"expected {dim} numbers, got {len(data) // 4}{double}", row)
    return np.frombuffer(data, dtype="<f4")


def _why_not(modality: str, value: Any, dim: int) -> str:
    """What is wrong with a vector that is not a list of `dim` numbers."""
    if not isinstance(value, list):
        none = f"; the collection has no encoder for {shorten(modality)}" if isinstance(value, dict) else ""
        return f"expected a list of {dim} numbers or a base64 string, got {shorten(value)}{none}"
    for i, number in enumerate(value):
        if type(number) not in _NUMBERS:
            return f"number {i}: expected a number, got {shorten(number)}"
    return f"expected {dim} numbers, got {len(value)}"


def _located(error: FeatureError, location: Location, model_name: str) -> CoreInputError:
    return CoreInputError(error, Fault.at(location, f"{error.reason} (model {model_name})"))
