"""What the client returns: small frozen objects. Fields that only newer servers know are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
Payload = dict[str, Any] | None
Scalar = str | int | float | bool | None


class Listing(Sequence[T], Generic[T]):
    """Results in order, with what else the reply says."""

    __slots__ = ()

    def _entries(self) -> tuple[T, ...]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._entries())

    def __iter__(self) -> Iterator[T]:
        return iter(self._entries())

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...

    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        return self._entries()[place]


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search.

    Attributes
    ----------
    database:
        In which it was found.
    distance:
        Lower is nearer: 1 - cosine, or the squared Euclidean distance.
    score:
        Higher is nearer: the cosine, or minus the distance.
    payload:
        None where there is none, or where it was not asked for.
    """

    id: str
    database: str
    distance: float
    score: float
    payload: Payload = None


@dataclass(frozen=True, slots=True)
class Hits(Listing[Hit]):
    """The results of a search, best first: a sequence of `Hit`.

    Attributes
    ----------
    hits:
        The results.
    next_cursor:
        `cursor` of the next page; None after the last one, and of batches.
    took_ms:
        Milliseconds that the server took; of a batch, for all of its queries that went together.
    """

    hits: tuple[Hit, ...]
    next_cursor: str | None
    took_ms: float

    def _entries(self) -> tuple[Hit, ...]:
        return self.hits

    @property
    def ids(self) -> list[str]:
        """The ids, best first."""
        return [hit.id for hit in self.hits]

    @property
    def distances(self) -> NDArray[np.float32]:
        """(k,) float32; lower is nearer."""
        return _floats([hit.distance for hit in self.hits])

    @property
    def scores(self) -> NDArray[np.float32]:
        """(k,) float32; higher is nearer."""
        return _floats([hit.score for hit in self.hits])


@dataclass(frozen=True, slots=True)
class Group(Listing[Hit]):
    """Results that have one value under the key of `group_by`, best first: a sequence of `Hit`."""

    key: Scalar
    hits: tuple[Hit, ...]

    def _entries(self) -> tuple[Hit, ...]:
        return self.hits


@dataclass(frozen=True, slots=True)
class Groups(Listing[Group]):
    """Groups of results, the one with the best result first: a sequence of `Group`."""

    groups: tuple[Group, ...]
    took_ms: float

    def _entries(self) -> tuple[Group, ...]:
        return self.groups


@dataclass(frozen=True, slots=True)
class Item:
    """An item as it is stored.

    Attributes
    ----------
    version:
        Of the collection when the item was last written; for `if_match` and `if_versions`.
    databases:
        Those that hold it: its modalities and, if it has several, ``pair``.
    codes:
        If they were asked for: of each database a code row (M + 1,) uint8, or (M,) of a model without norms.
    features:
        If they were asked for: kept features (P,) float32 of each modality, in the precision that they are kept with.
    """

    id: str
    version: int
    payload: Payload
    databases: tuple[str, ...]
    codes: dict[str, NDArray[np.uint8]] | None = field(default=None, compare=False)
    features: dict[str, NDArray[np.float32]] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ItemPage(Listing[Item]):
    """Items in order of insertion: a sequence of `Item`.

    Attributes
    ----------
    model:
        Name of the collection's model as it was then: what codes are by.
    total:
        Number of items, of those that match if there was a filter.
    """

    items: tuple[Item, ...]
    next_cursor: str | None
    model: str
    total: int

    def _entries(self) -> tuple[Item, ...]:
        return self.items


@dataclass(frozen=True, slots=True)
class Indexed:
    """What `index` did.

    Attributes
    ----------
    indexed:
        Items that are stored.
    left_out:
        Rows that have no modality, and were not sent.
    requests:
        Requests that it took.
    seconds:
        How long it took.
    """

    indexed: int
    left_out: int
    requests: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Deleted:
    """How many items were deleted."""

    deleted: int
    took_ms: float


@dataclass(frozen=True, slots=True)
class PayloadSet:
    """The item whose payload was replaced, and its version now."""

    id: str
    version: int
    took_ms: float


@dataclass(frozen=True, slots=True)
class Facet:
    """A value, and how many items have it."""

    value: Scalar
    count: int


@dataclass(frozen=True, slots=True)
class Facets(Listing[Facet]):
    """The most frequent values under a key: a sequence of `Facet`.

    Attributes
    ----------
    total:
        How many items there are, of those that match the filter.
    missing:
        How many of these have no value there.
    """

    values: tuple[Facet, ...]
    total: int
    missing: int
    took_ms: float

    def _entries(self) -> tuple[Facet, ...]:
        return self.values


def make(cls: type[T], data: Mapping[str, Any], **converted: Any) -> T:
    """A result of a JSON object: its known fields, lists as tuples, and those in `converted` instead of what is there.

    Raises
    ------
    TypeError, KeyError
        It is not such an object.
    """
    known: dict[str, Any] = {}
    for name in _names(cast(Any, cls)):
        if name in data:
            value = data[name]
            known[name] = tuple(value) if isinstance(value, list) else value
    return cls(**{**known, **converted})


def moment(text: str) -> datetime:
    """The time that an ISO 8601 string names."""
    return datetime.fromisoformat(text)


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def _floats(values: list[float]) -> NDArray[np.float32]:
    import numpy as np

    return np.array(values, dtype=np.float32)
