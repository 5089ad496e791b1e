"""CCQ and its rivals behind one interface: train on pairs, rank a database by codes or by continuous vectors."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.data import TASKS, Task
from ccq_core import CCQ, CodeIndex
from ccq_core.files import Arrays

Ids = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
HammingSearch = Callable[[NDArray[np.uint8], NDArray[np.uint8], int], tuple[Ids, NDArray[Any]]]
DEFAULTS = "CCQ"
PAPER = "CCQ-paper"
_PRESETS = {DEFAULTS: "default", PAPER: "paper"}


class Trained(Protocol):
    """A trained method. Queries and database are features by modality; ids are rows of the database, best first."""

    def rank(self, queries: Arrays, database: Arrays, k: int) -> Ids:
        """(q, k) ids by codes, as the method searches."""
        ...

    def rank_continuous(self, queries: Arrays, database: Arrays, k: int) -> Ids:
        """(q, k) ids by the continuous vectors that would have been coded."""
        ...


class Rival(Protocol):
    """What a class in `benchmarks.rivals.RIVALS` offers once it is made."""

    def fit(self, features: Mapping[str, NDArray[Any]], labels: NDArray[Any]) -> Rival:
        """Train on pairs."""
        ...

    def encode(self, features: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
        """(n, bits / 8) packed codes."""
        ...

    def project(self, features: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """(n, bits) vectors before binarization."""
        ...


@dataclass(frozen=True)
class Method:
    """A method by name.

    Attributes
    ----------
    fit:
        (features, labels, bits, seed) to a trained method.
    supervised:
        Whether it learns from labels.
    tasks:
        Which it can do; hashing with one code per modality has no fused items.
    """

    name: str
    fit: Callable[[Arrays, NDArray[Any], int, int], Trained]
    supervised: bool = False
    tasks: tuple[Task, ...] = TASKS


@dataclass(frozen=True)
class TrainedCCQ:
    """CCQ: queries stay continuous, the database is codes (AQD); equal distances in an order drawn by `seed`."""

    model: CCQ
    seed: int = 0

    def rank(self, queries: Arrays, database: Arrays, k: int) -> Ids:
        codes = self.model.encode(database)
        order = _shuffled(len(codes), self.seed)
        index = CodeIndex(self.model)
        index.add(order.tolist(), codes[order])
        return index.search(queries, k).ids.astype(np.int64)

    def rank_continuous(self, queries: Arrays, database: Arrays, k: int) -> Ids:
        return nearest(self.model.project(queries), self.model.project(database), k, self.model.metric)


@dataclass(frozen=True)
class TrainedRival:
    """A rival: both sides are codes, compared by Hamming distance; equal distances in an order drawn by `seed`."""

    model: Rival
    search: HammingSearch
    seed: int = 0

    def rank(self, queries: Arrays, database: Arrays, k: int) -> Ids:
        codes = self.model.encode(database)
        order = _shuffled(len(codes), self.seed)
        return np.asarray(order[self.search(self.model.encode(queries), codes[order], k)[0]])

    def rank_continuous(self, queries: Arrays, database: Arrays, k: int) -> Ids:
        return nearest(self.model.project(queries), self.model.project(database), k, "cosine")


def _shuffled(n: int, seed: int) -> Ids:
    # Items with equal codes tie, in 8 bits by the hundred, and searches break ties by position. The emoji stand group
    # by group, which would put relevant items beside each other.
    return np.random.default_rng(seed).permutation(n)


def nearest(queries: Floats, database: Floats, k: int, metric: str) -> Ids:
    """Exact nearest neighbours, ties by row.

    Parameters
    ----------
    queries, database:
        (q, D) and (n, D).
    k:
        Results per query, at most n.
    metric:
        ``cosine`` or ``euclidean``.

    Returns
    -------
    (q, k) rows of the database, best first.
    """
    y = database.astype(np.float64)
    norms = np.einsum("nd,nd->n", y, y)
    if metric == "cosine":
        keys = -(queries @ y.T) / np.sqrt(np.maximum(norms, np.finfo(np.float64).tiny))
    else:
        keys = norms - 2.0 * (queries @ y.T)
    return np.argsort(keys, axis=1, kind="stable")[:, :k]


def ccq(name: str, **settings: Any) -> Method:
    """CCQ with the settings that go by `name`, and with `settings` on top."""

    def fit(features: Arrays, labels: NDArray[Any], bits: int, seed: int) -> Trained:  # noqa: ARG001 (unsupervised)
        return TrainedCCQ(CCQ.preset(_PRESETS[name], bits=bits, seed=seed, **settings).fit(features), seed)

    return Method(name, fit)


def rival(name: str, make: Callable[..., Rival], search: HammingSearch) -> Method:
    """A rival by its class."""

    def fit(features: Arrays, labels: NDArray[Any], bits: int, seed: int) -> Trained:
        return TrainedRival(make(bits=bits, seed=seed).fit(features, labels), search, seed)

    tasks = tuple(task for task in TASKS if len(task.database) == 1)
    return Method(name, fit, bool(getattr(make, "supervised", False)), tasks)


def rivals() -> dict[str, Method]:
    """The methods of `benchmarks.rivals`, none where that package is absent."""
    if importlib.util.find_spec("benchmarks.rivals") is None:
        return {}
    package = importlib.import_module("benchmarks.rivals")
    classes: dict[str, Callable[..., Rival]] = {**package.RIVALS, **package.REPLICAS}
    search: HammingSearch = importlib.import_module("benchmarks.rivals.hamming").hamming_search
    return {name: rival(name, make, search) for name, make in classes.items()}


def methods() -> dict[str, Method]:
    """All methods by name: rivals first, as in the paper's table."""
    return {**rivals(), DEFAULTS: ccq(DEFAULTS), PAPER: ccq(PAPER)}
