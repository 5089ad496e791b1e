"""What all rivals share: checks, preprocessing, packing of bits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.standardize import Float64, Standardizer, fit_standardizer
from ccq_core.errors import FeatureError, InvalidInputError, NotFittedError
from ccq_core.features import FeatureSet, check_features, check_whole
from ccq_core.metrics import check_labels

Views = tuple[Float64, Float64]
HashMap = Callable[[Float64], Float64]


@dataclass(frozen=True)
class Linear:
    """f(x) = W^T x - t, whose signs are the bits.

    Attributes
    ----------
    weights:
        W, (P, bits).
    threshold:
        t, (bits,).
    """

    weights: Float64
    threshold: Float64

    def __call__(self, x: Float64) -> Float64:
        """Map preprocessed features (n, P) to (n, bits)."""
        return x @ self.weights - self.threshold


class Rival(ABC):
    """A method that maps two modalities into one Hamming space.

    Parameters
    ----------
    bits:
        Length of the codes, a multiple of 8.
    seed:
        Of everything random in training; the same seed gives the same bytes.
    preprocess:
        ``center``, ``zscore`` or ``zca``, fitted on the training features of each modality (see `standardize`). The
        default does what the CCQ paper says: every dimension gets zero mean and unit variance. Where features are
        rank-deficient (the topics of Wiki sum to one) the ridge of the method itself keeps inverses finite.

    Attributes
    ----------
    modalities_:
        The two names, in the order in which they were given to `fit`.
    dims_:
        Modality name to P_v.
    maps_:
        Modality name to the function from preprocessed features (n, P_v) to continuous codes (n, bits).
    """

    supervised: ClassVar[bool]
    """Whether `fit` needs labels. The others accept and ignore them."""

    def __init__(self, bits: int = 32, *, seed: int = 0, preprocess: str = "zscore") -> None:
        self.bits = bits
        self.seed = seed
        self.preprocess = preprocess

    def fit(self, features: Mapping[str, NDArray[Any]], labels: NDArray[Any] | None = None) -> Self:
        """Train on paired objects.

        Parameters
        ----------
        features:
            Two modalities, (n, P_v) each; row i of both is the same object.
        labels:
            (n,) with one label each, or (n, L) 0/1.

        Raises
        ------
        InvalidInputError
            Not two modalities, an object that lacks one, labels that are missing or do not fit, or bits that are no
            multiple of 8.
        """
        bits = check_whole("bits", self.bits, 8, 1024)
        if bits % 8:
            raise InvalidInputError(f"bits: expected a multiple of 8, got {bits}")
        checked = _complete(check_features(features))
        if len(checked.arrays) != 2:
            raise InvalidInputError(f"features: expected two modalities, got {sorted(checked.arrays)}")
        if checked.n < 2:
            raise InvalidInputError(f"features: expected at least 2 objects, got {checked.n}")
        memberships = np.zeros((checked.n, 0)) if labels is None else one_hot(labels, checked.n)
        if self.supervised and labels is None:
            raise InvalidInputError(f"labels: {type(self).__name__} is supervised and needs them, got none")
        first, second = checked.arrays
        fitted = {name: fit_standardizer(self.preprocess, array) for name, array in checked.arrays.items()}
        views = (fitted[first](checked.arrays[first]), fitted[second](checked.arrays[second]))
        maps = self._train(views, memberships, np.random.default_rng(self.seed))
        self._standardizers: dict[str, Standardizer] = fitted
        self.modalities_ = (first, second)
        self.dims_ = checked.dims
        self.maps_: dict[str, HashMap] = {first: maps[0], second: maps[1]}
        return self

    def project(self, features: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Continuous codes, whose signs are the bits.

        Parameters
        ----------
        features:
            One modality, (n, P_v).

        Returns
        -------
        (n, bits) float32, thresholds subtracted.
        """
        if not hasattr(self, "maps_"):
            raise NotFittedError(f"this {type(self).__name__} has not been trained; call fit first")
        checked = _complete(check_features(features, self.dims_))
        if len(checked.arrays) != 1:
            raise InvalidInputError(f"features: expected one modality, got {sorted(checked.arrays)}")
        ((name, array),) = checked.arrays.items()
        return self.maps_[name](self._standardizers[name](array)).astype(np.float32)

    def encode(self, features: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
        """Codes of one modality (see `project`), (n, bits / 8): 1 where the continuous code is above zero."""
        return np.packbits(self.project(features) > 0, axis=1)

    @abstractmethod
    def _train(self, views: Views, labels: Float64, rng: np.random.Generator) -> tuple[HashMap, HashMap]:
        """Learn the two maps.

        Parameters
        ----------
        views:
            Preprocessed features, (n, P_1) and (n, P_2).
        labels:
            (n, L) 0/1; L is 0 where none were given.
        rng:
            The only source of randomness.
        """


def one_hot(labels: NDArray[Any], rows: int) -> Float64:
    """Labels (n,) or (n, L) as a 0/1 matrix (n, L)."""
    checked = check_labels("labels", np.asarray(labels), rows)
    if checked.ndim == 2:
        return checked.astype(np.float64)
    values, positions = np.unique(checked, return_inverse=True)
    return np.eye(len(values))[positions]


def _complete(features: FeatureSet) -> FeatureSet:
    for name, present in features.present.items():
        if not present.all():
            row = int(np.flatnonzero(~present)[0])
            raise FeatureError(name, "all NaN, but rivals need every modality of every object", row=row)
    return features
