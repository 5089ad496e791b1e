"""CodeIndex: codes with ids, held in memory, searched by AQD."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ccq_core.distances import check_metric
from ccq_core.errors import InvalidInputError, UnknownIdError
from ccq_core.features import Features, as_array, check_whole
from ccq_core.model import CCQ
from ccq_core.table import CodeTable


@dataclass(frozen=True)
class Hits:
    """Results of q queries, best first.

    Attributes
    ----------
    ids:
        (q, k) object array of the ids as they were added.
    distances:
        (q, k) float32: squared Euclidean AQD, or 1 - cosine. k is at most the number of items.
    """

    ids: NDArray[Any]
    distances: NDArray[np.float32]


class CodeIndex:
    """Exact AQD search over code rows.

    Parameters
    ----------
    model:
        The fitted model that made the codes and maps the queries.
    """

    def __init__(self, model: CCQ) -> None:
        self._model = model
        self._table = CodeTable(model.code_width)
        self._labels: dict[Any, int] = {}
        self._ids: dict[int, Any] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._labels)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._labels

    def add(self, ids: Sequence[Any], codes: ArrayLike) -> None:
        """Add items; one whose id is known replaces the old one and counts as newly inserted.

        Parameters
        ----------
        ids:
            n distinct hashable ids.
        codes:
            (n, M + 1) uint8 from `CCQ.encode`.

        Raises
        ------
        InvalidInputError
            An id twice, or not hashable, or codes of another shape or dtype. Nothing is added.
        """
        names = _hashable(ids)
        rows = as_array(codes, lambda reason: InvalidInputError(f"codes: {reason}"))
        if len(set(names)) != len(names):
            raise InvalidInputError("ids: the same id twice in one call")
        labels = np.arange(self._next, self._next + len(names), dtype=np.int64)
        self._table.append(labels, rows)
        self._next += len(names)
        self._drop([name for name in names if name in self._labels])
        for name, label in zip(names, labels.tolist(), strict=True):
            self._labels[name] = label
            self._ids[label] = name

    def delete(self, ids: Iterable[Any]) -> None:
        """Delete items.

        Raises
        ------
        UnknownIdError
            An id that the index does not hold. Nothing is deleted.
        InvalidInputError
            An id that is not hashable.
        """
        names = list(dict.fromkeys(_hashable(ids)))
        for name in names:
            if name not in self._labels:
                raise UnknownIdError(f"ids: no item {name!r} in this index")
        self._drop(names)

    def search(self, features: Features, k: int = 10, *, metric: str | None = None) -> Hits:
        """The k nearest items of each query by AQD, ties by order of insertion.

        Parameters
        ----------
        features:
            Modality name to (q, P_v) numbers; several modalities make fused queries (as in `CCQ.encode`).
        k:
            How many, at least 1.
        metric:
            ``cosine`` or ``euclidean``; the model's own by default.

        Raises
        ------
        InvalidInputError
            k that is no whole number from 1 up, or features that `CCQ.encode` would refuse.
        """
        k = min(check_whole("k", k, 1), max(len(self), 1))
        tables = self._model.distance_tables(features, metric=None if metric is None else check_metric(metric))
        found = self._table.view().search(tables, k)
        width = min(k, len(self))
        ids = np.empty((len(found), width), dtype=object)
        keys = np.empty((len(found), width))
        for row, (labels, values) in enumerate(found):
            ids[row] = [self._ids[label] for label in labels.tolist()]
            keys[row] = values
        return Hits(ids, tables.distances(keys))

    def _drop(self, names: list[Any]) -> None:
        labels = sorted(self._labels.pop(name) for name in names)
        for label in labels:
            del self._ids[label]
        self._table.delete(np.array(labels, dtype=np.int64))


def _hashable(ids: Iterable[Any]) -> list[Any]:
    try:
        names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        hash(tuple(names))
    except TypeError as error:
        raise InvalidInputError(f"ids: expected a sequence of hashable ids ({error})") from None
    return names
