"""What the client returns of collections, aliases, models and snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ccq_client.results import Listing


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
