"""`ccq evaluate` of data without labels: how well objects are found by another of their modalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_cli.console import out
from ccq_cli.data import read_features, remember
from ccq_cli.jobview import print_neighbours, print_recall
from ccq_core import CCQ
from ccq_core.distances import Metric
from ccq_core.errors import InvalidInputError
from ccq_core.evaluation import LabelledData, dataset_of, features_of
from ccq_core.features import Float32, check_array, check_features
from ccq_core.files import Arrays, read_npz
from ccq_core.neighbours import find_neighbours
from ccq_core.partners import find_partners

HELD_OUT = 0.1
_MOST = 10_000


@dataclass(frozen=True)
class Unlabelled:
    """Objects in their modalities, by name (n, P): those to train on, if they are told from others; and the others."""

    train: Arrays | None
    test: Arrays

    def divided(self, share: float, seed: int) -> tuple[Arrays, Arrays]:
        """Objects to train on, and others to try a model on: as given, or a share of them, drawn at random.

        Only objects that have several modalities are held out, where there are some.
        """
        if self.train is not None:
            return self.train, self.test
        modalities = np.sum([~np.isnan(array).all(axis=1) for array in self.test.values()], axis=0)
        enough = np.flatnonzero(modalities >= min(2, modalities.max(initial=1)))
        many = min(int(share * len(enough)), _MOST)
        held = np.sort(np.random.default_rng([seed, 1]).choice(enough, many, replace=False))
        if not held.size:
            raise InvalidInputError(f"expected {round(1 / share)} objects or more, to hold some out, got {len(enough)}")
        rest = np.delete(np.arange(len(modalities)), held)
        return _rows(self.test, rest), _rows(self.test, held)


def read(words: Sequence[str], columns: Sequence[str] = ()) -> LabelledData | Unlabelled:
    """What the words name: one `FILE.npz`, which may have labels, or what else `read_features` takes."""
    if len(words) > 1 or "=" in words[0] or words[0].endswith((".npy", ".parquet")) or columns:
        return Unlabelled(None, _floats(read_features(words, columns)))
    arrays = read_npz(words[0])
    train, test, plain = (features_of(arrays, suffix) for suffix in ("_train", "_test", ""))
    remember(dict.fromkeys([*train, *test, *plain], words[0]))
    if train or test or not plain or {"label_train", "label_test"} & arrays.keys():
        if train and set(train) == set(test) and not {"label_train", "label_test"} & arrays.keys():
            return Unlabelled(_floats(train), _floats(test))
        return dataset_of(arrays, words[0])
    return Unlabelled(None, _floats(plain))


def measure(model: CCQ, test: Arrays, metric: Metric | None) -> dict[str, Any]:
    """What can be told of a model without labels, by objects that it was not trained on."""
    missing = [name for name in model.modalities if name not in test]
    if missing:
        raise InvalidInputError(f"the data have no modality {missing[0]!r}, which this model was trained on")
    features = check_features({name: test[name] for name in model.modalities}, model.dims)
    return {
        "evaluation": [one.plain() for one in find_partners(model, features, metric=metric)],
        "neighbours": [one.plain() for one in find_neighbours(model, features, metric=metric)],
        "quantization_error": {
            name: _error(model, model.project({name: array[features.present[name]]}))
            for name, array in features.arrays.items()
            if features.present[name].any()
        },
    }


def mean(values: Sequence[Any]) -> Any:
    """The mean of each number in results of one shape."""
    first = values[0]
    if isinstance(first, dict):
        return {key: mean([value[key] for value in values]) for key in first}
    if isinstance(first, list):
        return [mean(entries) for entries in zip(*values, strict=True)]
    return fmean(values) if isinstance(first, float) else first


def show(found: dict[str, Any]) -> None:
    """What `measure` found, for people."""
    print_recall(found["evaluation"])
    print_neighbours(found["neighbours"])
    for name, error in found["quantization_error"].items():
        out.print(f"{name}: codes leave {error:.1%} of the squared length of its latent vectors")


def _error(model: CCQ, z: Float32) -> float:
    """The share of the squared length of latent vectors (n, D) that is not in their codes."""
    if model.norm_ == "none":  # such codes are of directions
        z = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-30)
    return float(np.square(z - model.decode(model.encode_latent(z))).sum() / max(float(np.square(z).sum()), 1e-30))


def _floats(arrays: Arrays) -> Arrays:
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidInputError(f"the modalities have different numbers of rows: {sizes}; mark absent ones by NaN")
    for name, array in arrays.items():
        check_array(name, array)  # before they are divided, so that rows have the numbers that they have in the file
    return {name: array if array.dtype.kind == "f" else array.astype(np.float64) for name, array in arrays.items()}


def _rows(arrays: Arrays, rows: NDArray[np.intp]) -> Arrays:
    return {name: array[rows] for name, array in arrays.items()}
