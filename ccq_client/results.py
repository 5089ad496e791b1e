"""What the client returns: small frozen objects. Fields that only newer servers know are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

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
    """Items in order of insertion: a sequence of `Item`."""

    items: tuple[Item, ...]
    next_cursor: str | None

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


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection.

    Attributes
    ----------
    model:
        Name of its model.
    indexes:
        Keys of payloads whose values are indexed.
    keep:
        How the features of its items are kept: ``none``, ``float16`` or ``int8``.
    encoders:
        Names of the service's encoders by modality, where it makes features of texts or images.
    state:
        ``ready``, ``loading`` or ``failed``.
    items, databases:
        How many items there are, and in each database; None until it is loaded.
    code_bytes:
        Memory that its codes take, in bytes; None until it is loaded.
    """

    name: str
    model: str
    state: Literal["ready", "loading", "failed"]
    items: int | None
    databases: dict[str, int] | None
    code_bytes: int | None = None
    indexes: tuple[str, ...] = ()
    keep: Literal["none", "float16", "int8"] = "none"
    encoders: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name, `alias`, of the collection `collection`."""

    alias: str
    collection: str


@dataclass(frozen=True, slots=True)
class Modality:
    """A modality of a model: the length of its feature vectors, and its weight in fused items and queries."""

    dim: int
    weight: float


@dataclass(frozen=True, slots=True)
class Model:
    """A model.

    Attributes
    ----------
    checksum:
        SHA-256 of its file, in hex.
    size:
        Length of its file in bytes.
    created:
        When the file was uploaded.
    bits:
        Length of a code.
    databases:
        Those of a collection with this model.
    collections:
        Names of the collections that use it.
    dim:
        Dimension of its latent space.
    losses:
        Training loss after each iteration.
    """

    name: str
    checksum: str
    size: int
    created: datetime
    bits: int
    metric: Literal["cosine", "euclidean"]
    modalities: dict[str, Modality]
    databases: tuple[str, ...]
    collections: tuple[str, ...]
    dim: int | None = None
    losses: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot on the server's disk.

    Attributes
    ----------
    size:
        Length of its file in bytes.
    checksum:
        SHA-256 of the database in it, in hex.
    created:
        Of which moment it is.
    collections:
        Number of items in it of each collection.
    """

    name: str
    size: int
    checksum: str
    created: datetime
    collections: dict[str, int]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what that caller may do.

    Attributes
    ----------
    name:
        Of the API key, or the subject of the token; ``anyone`` where there are none.
    scopes:
        What is allowed: ``search``, ``write``, ``admin``, which is all of it.
    collections:
        Where it is allowed; None: everywhere.
    """

    name: str
    scopes: tuple[str, ...]
    collections: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Usage:
    """How often the codewords of a collection's model are used.

    Attributes
    ----------
    version:
        The collection's version that this is of.
    rows:
        Number of codes that were counted, those of all databases.
    codebooks:
        For each codebook how many codes use each of its 256 codewords.
    """

    model: str
    version: int
    rows: int
    codebooks: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class MapPoint:
    """Where one item lies in one database; `label`: what its payload has under the key that was asked for."""

    id: str
    database: str
    x: float
    y: float
    label: str | None = None


@dataclass(frozen=True, slots=True)
class LatentMap(Listing[MapPoint]):
    """A sample of a collection in the two directions in which it is spread most: a sequence of `MapPoint`.

    Attributes
    ----------
    version:
        The collection's version that this is of.
    rows:
        Number of codes that the sample is from, those of all databases.
    explained:
        Share of the sample's variance along x and along y.
    points:
        By database, in order of insertion.
    """

    model: str
    version: int
    rows: int
    explained: tuple[float, ...]
    points: tuple[MapPoint, ...]

    def _entries(self) -> tuple[MapPoint, ...]:
        return self.points


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder of the service: what it makes features of, and how long they are."""

    takes: Literal["text", "image"]
    dim: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may be, as far as it concerns a client; docs/service.md has the meaning of each.

    Attributes
    ----------
    dimensions:
        Length of the feature vectors of each modality, for each collection.
    encoders:
        The service's encoders by name.

    What an older service does not tell is 0, or None where there may be no limit.
    """

    max_body_bytes: int
    max_model_bytes: int
    max_payload_bytes: int
    max_batch_items: int
    max_batch_queries: int
    max_limit: int
    max_results: int
    max_brackets: int
    request_seconds: float
    dimensions: dict[str, dict[str, int]]
    encoders: dict[str, Encoder] = field(default_factory=dict)
    max_facet_values: int = 0
    max_filter_conditions: int = 0
    max_filter_depth: int = 0
    max_filter_values: int = 0
    max_id_bytes: int = 0
    max_idempotency_key: int = 0
    max_image_bytes: int = 0
    max_image_pixels: int = 0
    max_jobs: int = 0
    max_memory_bytes: int | None = None
    max_reply_bytes: int = 0
    max_rows_at_once: int = 0
    max_text_chars: int = 0
    max_training_bytes: int = 0
    max_waiting: int = 0
    max_waiting_writes: int = 0
    search_threads: int = 0
    write_threads: int = 0


DEFAULT_LIMITS = Limits(
    max_body_bytes=33_554_432,
    max_model_bytes=268_435_456,
    max_payload_bytes=65_536,
    max_batch_items=10_000,
    max_batch_queries=1000,
    max_limit=10_000,
    max_results=100_000,
    max_brackets=1 << 20,
    request_seconds=60.0,
    dimensions={},
    max_facet_values=100_000,
    max_filter_conditions=1000,
    max_filter_depth=16,
    max_filter_values=100_000,
    max_id_bytes=512,
    max_idempotency_key=255,
    max_image_bytes=16_777_216,
    max_image_pixels=40_000_000,
    max_jobs=16,
    max_reply_bytes=67_108_864,
    max_rows_at_once=100_000_000,
    max_text_chars=10_000,
    max_training_bytes=4_294_967_296,
    max_waiting=1024,
    max_waiting_writes=256,
    write_threads=4,
)
"""Those of a service without settings, for where it is not asked; `search_threads` are those of its machine."""


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
