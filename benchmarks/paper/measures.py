"""Precision and recall of rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.data import Task
from benchmarks.paper.methods import Ids, Trained
from ccq_core.evaluation import LabelledData
from ccq_core.metrics import mean_average_precision, relevance

Float64 = NDArray[np.float64]
Relevant = NDArray[np.bool_]
R = 50


def relevant_results(ids: Ids, queries: NDArray[Any], database: NDArray[Any]) -> Relevant:
    """(q, k) bool of ids (q, k): which results share a label with their query. Labels as in `LabelledData`."""
    return relevance(queries, database[ids])


def map_score(trained: Trained, data: LabelledData, task: Task, *, continuous: bool = False) -> float:
    """MAP@50 of one task: the training objects are the database, the test objects the queries."""
    rank = trained.rank_continuous if continuous else trained.rank
    database = {name: data.train[name] for name in task.database}
    ids = rank({task.query: data.test[task.query]}, database, min(R, len(data.train_labels)))
    return mean_average_precision(relevant_results(ids, data.test_labels, data.train_labels))


def precision_recall(relevant: Relevant, levels: Sequence[float] | Float64) -> Float64:
    """Interpolated precision at fixed levels of recall, averaged over queries.

    Parameters
    ----------
    relevant:
        (q, n) bool: whether the r-th result of each query is relevant, over the whole database.
    levels:
        Recall, 0 to 1.

    Returns
    -------
    (levels,): the mean of max over r with recall(r) >= level of precision(r). Queries to which nothing in the database
    is relevant have no recall and are left out.

    Raises
    ------
    ValueError
        Nothing is relevant to any query.
    """
    hits = np.cumsum(relevant, axis=1)
    hits = hits[hits[:, -1] > 0]
    if not len(hits):
        raise ValueError("precision_recall: no query has a relevant item in the database")
    precision = hits / np.arange(1, hits.shape[1] + 1)
    best_from_here = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    total = np.zeros(len(levels))
    for found, best in zip(hits, best_from_here, strict=True):
        needed = np.ceil(np.asarray(levels) * found[-1] - 1e-9)
        total += best[np.searchsorted(found, needed)]
    return total / len(hits)


def precision_at(relevant: Relevant, ranks: Sequence[int]) -> Float64:
    """Mean precision of the first R of relevant (q, n), for each R of `ranks`, 1 to n."""
    hits = np.cumsum(relevant, axis=1)
    return np.array([hits[:, r - 1].mean() / r for r in ranks])
