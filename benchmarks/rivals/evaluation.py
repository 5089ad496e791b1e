"""MAP of a rival on labelled data, and cross-validation within the training rows."""

from __future__ import annotations

import numpy as np

from benchmarks.rivals.base import Rival
from benchmarks.rivals.hamming import hamming_search
from ccq_core.evaluation import LabelledData
from ccq_core.metrics import mean_average_precision, relevance


def tasks(first: str, second: str) -> list[tuple[str, str]]:
    """(query modality, database modality) in the order of the paper's tables."""
    return [(first, first), (second, second), (first, second), (second, first)]


def evaluate(model: Rival, data: LabelledData, *, r: int = 50) -> dict[str, float]:
    """MAP@r by task, ``"image->text"`` and so on; the database is the training set, encoded per modality."""
    database = {name: model.encode({name: data.train[name]}) for name in model.modalities_}
    queries = {name: model.encode({name: data.test[name]}) for name in model.modalities_}
    result = {}
    for query, target in tasks(*model.modalities_):
        ids, _ = hamming_search(queries[query], database[target], r)
        relevant = relevance(data.test_labels, data.train_labels[ids])
        result[f"{query}->{target}"] = mean_average_precision(relevant)
    return result


def cross_validate(model: Rival, data: LabelledData, *, folds: int = 3, seed: int = 0) -> dict[str, float]:
    """MAP@50 by task, mean over folds of the training rows; the test rows are not looked at.

    Parameters
    ----------
    model:
        Fitted anew for each fold.
    data:
        Only `train` and `train_labels` are used.
    folds:
        Parts, each of which serves once as the queries while the others are training set and database.
    seed:
        Of the partition.
    """
    part = np.random.default_rng(seed).permutation(len(data.train_labels)) % folds
    runs = []
    for fold in range(folds):
        inside, outside = part != fold, part == fold
        split = LabelledData(
            {name: array[inside] for name, array in data.train.items()},
            {name: array[outside] for name, array in data.train.items()},
            data.train_labels[inside],
            data.train_labels[outside],
        )
        runs.append(evaluate(model.fit(split.train, split.train_labels), split))
    return {task: float(np.mean([run[task] for run in runs])) for task in runs[0]}
