"""Retrieval quality on labelled data: every direction between modalities, by MAP@R."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError
from ccq_core.files import Arrays, read_npz
from ccq_core.index import CodeIndex
from ccq_core.metrics import check_labels, mean_average_precision, relevance
from ccq_core.model import CCQ, PAIR


@dataclass(frozen=True)
class LabelledData:
    """Training objects, which are also the database, and queries.

    Attributes
    ----------
    train, test:
        Modality name to (n, P_v) features; a row of NaN marks an absent modality.
    train_labels, test_labels:
        (n,) one label per object, or (n, L) 0/1.
    """

    train: Arrays
    test: Arrays
    train_labels: NDArray[Any]
    test_labels: NDArray[Any]


def features_of(arrays: Mapping[str, NDArray[Any]], suffix: str = "") -> Arrays:
    """The modalities among named arrays: two-dimensional numbers called `{modality}{suffix}`, labels left out."""
    return {
        name.removesuffix(suffix): array
        for name, array in arrays.items()
        if name.endswith(suffix) and name != f"label{suffix}" and array.ndim == 2 and array.dtype.kind in "fiu"
    }


def load_dataset(path: str | os.PathLike[str]) -> LabelledData:
    """Read `{modality}_train`, `{modality}_test`, `label_train` and `label_test` from an `.npz` file.

    Raises
    ------
    FileNotFoundError
        No such file.
    InvalidInputError
        Not an `.npz` file, or arrays that are missing or do not fit together.
    """
    return dataset_of(read_npz(path), os.fspath(path))


def dataset_of(arrays: Mapping[str, NDArray[Any]], place: str) -> LabelledData:
    """The same of arrays in memory; `place` names them in messages."""
    train, test = features_of(arrays, "_train"), features_of(arrays, "_test")
    if not train or set(train) != set(test):
        raise InvalidInputError(
            f"{place}: expected two-dimensional arrays NAME_train and NAME_test for the same names, "
            f"got {sorted(train) or 'none'} and {sorted(test) or 'none'}"
        )
    for name in ("label_train", "label_test"):
        if name not in arrays:
            raise InvalidInputError(f"{place}: array {name!r} is missing")
    rows = len(next(iter(train.values()))), len(next(iter(test.values())))
    labels = check_labels("label_train", arrays["label_train"], rows[0])
    test_labels = check_labels("label_test", arrays["label_test"], rows[1])
    if labels.shape[1:] != test_labels.shape[1:]:
        raise InvalidInputError(f"labels: shapes {labels.shape} and {test_labels.shape} do not fit together")
    return LabelledData(train, test, labels, test_labels)


def tasks(modalities: tuple[str, ...]) -> list[tuple[str, str]]:
    """(query modality, database) of every retrieval task: within each modality, across, then against fused pairs."""
    within = [(name, name) for name in modalities]
    across = [(a, b) for a in modalities for b in modalities if a != b]
    fused = [(name, PAIR) for name in modalities] if len(modalities) > 1 else []
    return within + across + fused


def evaluate(model: CCQ, data: LabelledData, *, r: int = 50, metric: str | None = None) -> dict[str, float]:
    """MAP@r of every task.

    The database is the training set, encoded afresh for each modality and once fused, as in the paper.

    Parameters
    ----------
    model:
        Fitted on modalities that `data` has.
    r:
        Results that count, per query.
    metric:
        ``cosine`` or ``euclidean``; the model's own by default.

    Returns
    -------
    ``"image->text"`` and so on to MAP.

    Raises
    ------
    InvalidInputError
        The data lack a modality of the model, or have other dimensions.
    """
    missing = [name for name in model.modalities if name not in data.train]
    if missing:
        raise InvalidInputError(f"the data have no modality {missing[0]!r}, which this model was trained on")
    result: dict[str, float] = {}
    databases = {name: _database(model, data, (name,)) for name in model.modalities}
    if len(model.modalities) > 1:
        databases[PAIR] = _database(model, data, model.modalities)
    for query, database in tasks(model.modalities):
        present = _present(data.test[query])
        hits = databases[database].search({query: data.test[query][present]}, r, metric=metric)
        rows = hits.ids.astype(np.int64)
        relevant = relevance(data.test_labels[present], data.train_labels[rows])
        result[f"{query}->{database}"] = mean_average_precision(relevant)
    return result


def _database(model: CCQ, data: LabelledData, names: tuple[str, ...]) -> CodeIndex:
    """Index of the training objects that have all these modalities, by row number."""
    present = np.logical_and.reduce([_present(data.train[name]) for name in names])
    index = CodeIndex(model)
    # Data files are often sorted by label, and equal distances go by order of insertion: that must not tell the label.
    rows = np.random.default_rng(0).permutation(np.flatnonzero(present))
    if rows.size == 0:
        raise InvalidInputError(f"no training object has {' and '.join(names)}")
    index.add(rows.tolist(), model.encode({name: data.train[name][rows] for name in names}))
    return index


def _present(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind != "f":
        return np.ones(len(array), dtype=bool)
    return np.asarray(~np.isnan(array).all(axis=1))
