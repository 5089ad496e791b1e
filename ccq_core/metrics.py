"""Mean average precision as the paper defines it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError


def check_labels(name: str, labels: NDArray[Any], rows: int) -> NDArray[Any]:
    """Labels of `rows` objects: (n,) with one each, or an (n, L) 0/1 matrix.

    Raises
    ------
    InvalidInputError
        Another shape, or a matrix with other values than 0 and 1.
    """
    if labels.ndim not in (1, 2) or len(labels) != rows:
        raise InvalidInputError(f"{name}: expected shape ({rows},) or ({rows}, L), got {labels.shape}")
    if labels.ndim == 2 and not np.isin(labels, (0, 1)).all():
        raise InvalidInputError(f"{name}: expected a matrix of 0 and 1")
    return labels


def relevance(query_labels: NDArray[Any], result_labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which results share at least one label with their query.

    Parameters
    ----------
    query_labels:
        (q,) with one label each, or (q, L) 0/1.
    result_labels:
        Labels of the r-th result of each query: (q, R), or (q, R, L).

    Returns
    -------
    (q, R) bool.
    """
    if query_labels.ndim == 1:
        return np.asarray(query_labels[:, None] == result_labels)
    shared = np.einsum("ql,qrl->qr", query_labels.astype(np.float32), result_labels.astype(np.float32))
    return np.asarray(shared > 0)


def mean_average_precision(relevant: NDArray[np.bool_]) -> float:
    """MAP@R of ranked results.

    Parameters
    ----------
    relevant:
        (q, R) bool, whether the r-th result of each query is relevant; R >= 1.

    Returns
    -------
    The mean over queries of AP@R = sum_r P(r) delta(r) / sum_r delta(r), zero for a query without a relevant result.
    (Section 5.3 of the paper: the denominator counts the relevant results among the R retrieved.)
    """
    hits = np.cumsum(relevant, axis=1)
    precision = hits / np.arange(1, relevant.shape[1] + 1)
    ap = (precision * relevant).sum(axis=1) / np.maximum(hits[:, -1], 1)
    return float(ap.mean()) if len(ap) else 0.0
