"""Where training reads its features from: memory, or batches that are gone through again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import FeatureError, InvalidInputError
from ccq_core.features import Features, FeatureSet, check_features, in_short

_ROWS = 1 << 15


class Source(ABC):
    """Objects in batches, the same ones in the same order each time it is iterated.

    Attributes
    ----------
    dims:
        Feature dimension P_v by modality name.
    n:
        Number of objects.
    having, alone:
        How many of them have each modality, and how many have no other.
    """

    dims: dict[str, int]
    n: int
    having: dict[str, int]
    alone: dict[str, int]

    @abstractmethod
    def __iter__(self) -> Iterator[FeatureSet]:
        """Batches that all have all modalities, with rows of zeros for those that are absent."""

    def map(self, function: Callable[[FeatureSet], FeatureSet], dims: dict[str, int]) -> Source:
        """The same objects with every batch transformed; `dims`: what the dimensions are then."""
        return _Mapped(self, function, dims)


class InMemory(Source):
    """Features that are held as a whole, in slices."""

    def __init__(self, features: FeatureSet, rows: int = _ROWS) -> None:
        self.features = features
        self.dims = features.dims
        self.n = features.n
        self.having, self.alone = _presence(features)
        self._rows = rows

    def __iter__(self) -> Iterator[FeatureSet]:
        for lo in range(0, self.n, self._rows):
            yield self.features[lo : lo + self._rows]

    def map(self, function: Callable[[FeatureSet], FeatureSet], dims: dict[str, int]) -> InMemory:
        """See `Source.map`; done once, and held."""
        parts = [function(batch) for batch in self]
        arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in dims}
        return InMemory(FeatureSet(arrays, self.features.present, self.n), self._rows)


class Streamed(Source):
    """Batches that a re-iterable of mappings yields, checked anew on each pass; one of them is in memory at a time.

    Parameters
    ----------
    batches:
        Yields mappings from modality name to (n_i, P_v) numbers (see `check_features`), the same ones each time. A
        modality that a batch lacks is absent from all its objects.

    Raises
    ------
    InvalidInputError
        An iterator, which could be used only once; no objects; batches that differ from pass to pass; and what
        `check_features` raises, with rows counted from the first batch on.
    """

    def __init__(self, batches: Iterable[Features]) -> None:
        if not isinstance(batches, Iterable) or isinstance(batches, str | bytes | np.ndarray):
            raise InvalidInputError(
                "features: expected a mapping from modality to array, or something that yields such mappings, "
                f"got {in_short(type(batches).__name__)}"
            )
        if isinstance(batches, Iterator):
            raise InvalidInputError(
                f"features: batches are gone through many times, and this {type(batches).__name__} can be only once; "
                "pass a list, or an object whose __iter__ begins anew"
            )
        self._batches = batches
        self.dims = {}
        self.n = 0
        self.having, self.alone = {}, {}
        for batch in self._checked():
            self.n += batch.n
            having, alone = _presence(batch)
            for name, dim in batch.dims.items():
                self.dims[name] = dim
                self.having[name] = self.having.get(name, 0) + having[name]
                self.alone[name] = self.alone.get(name, 0) + alone[name]
        if self.n == 0:
            raise InvalidInputError("features: expected batches with objects in them, got none")

    def __iter__(self) -> Iterator[FeatureSet]:
        seen = 0
        for batch in self._checked():
            seen += batch.n
            if seen > self.n:
                break
            yield self._completed(batch)
        if seen != self.n:
            raise InvalidInputError(
                f"features: the first pass over the batches found {self.n} objects, this one {seen}"
                f"{' or more' if seen > self.n else ''}; they must be the same each time"
            )

    def _checked(self) -> Iterator[FeatureSet]:
        first = 0
        known = dict(self.dims)
        surveying = not known  # the first pass; this generator's own copy grows with it
        for batch in self._batches:
            try:
                checked = check_features(batch, known or None, others=surveying, first=first)
            except FeatureError as error:
                if error.row is None:
                    raise
                raise FeatureError(error.modality, error.reason, first + error.row) from None
            if surveying:
                known |= checked.dims
            first += checked.n
            yield checked

    def _completed(self, batch: FeatureSet) -> FeatureSet:
        if set(batch.arrays) == set(self.dims):
            return batch
        arrays = {
            name: batch.arrays[name] if name in batch.arrays else np.zeros((batch.n, dim), dtype=np.float32)
            for name, dim in self.dims.items()
        }
        nobody = np.zeros(batch.n, dtype=bool)
        return FeatureSet(arrays, {name: batch.present.get(name, nobody) for name in self.dims}, batch.n)


class _Mapped(Source):
    """A source whose batches are transformed on their way."""

    def __init__(self, source: Source, function: Callable[[FeatureSet], FeatureSet], dims: dict[str, int]) -> None:
        self.dims = dims
        self.n = source.n
        self.having, self.alone = source.having, source.alone
        self._source = source
        self._function = function

    def __iter__(self) -> Iterator[FeatureSet]:
        return map(self._function, self._source)


def _presence(features: FeatureSet) -> tuple[dict[str, int], dict[str, int]]:
    """How many objects have each modality, and how many have no other."""
    modalities = np.stack(list(features.present.values())).sum(axis=0)
    having = {name: int(np.count_nonzero(mask)) for name, mask in features.present.items()}
    alone = {name: int(np.count_nonzero(mask & (modalities == 1))) for name, mask in features.present.items()}
    return having, alone


def open_source(features: Features | Iterable[Features]) -> InMemory | Streamed:
    """Features as training reads them; see `CCQ.fit`."""
    return InMemory(check_features(features)) if isinstance(features, Mapping) else Streamed(features)


def sample(source: Source, rows: NDArray[np.intp]) -> FeatureSet:
    """Some objects, by ascending row number."""
    parts: list[FeatureSet] = []
    first = 0
    for batch in source:
        wanted = rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + batch.n)]
        parts.append(batch[wanted - first])
        first += batch.n
    return FeatureSet(
        {name: np.concatenate([part.arrays[name] for part in parts]) for name in source.dims},
        {name: np.concatenate([part.present[name] for part in parts]) for name in source.dims},
        len(rows),
    )
