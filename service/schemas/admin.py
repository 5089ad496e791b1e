"""Requests and replies about collections, models and the server."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from service.places import shorten
from service.schemas.base import Schema, Several
from service.schemas.filters import Key
from service.schemas.names import Name

MAX_INDEXES = 64


def _check_encoders(value: Any) -> Any:
    if isinstance(value, dict):  # seen to here: a fault for each of a million would tell no more than one
        for modality, name in value.items():
            if not isinstance(name, str):
                raise ValueError(f"{shorten(modality)}: expected the name of an encoder, got {shorten(name)}")  # noqa: TRY004 (pydantic takes ValueError)
    return value


EncoderNames = Annotated[dict[str, str], BeforeValidator(_check_encoders)]


class CollectionRequest(Schema):
    """What a collection is to be."""

    model: Name = Field(description="Name of the model that encodes its items and queries.")
    indexes: Several[Key] | None = Field(
        None,
        max_length=MAX_INDEXES,
        description="Payload keys whose values are indexed, so that filters on them do not read every payload. Left "
        "out: as they are. A list replaces them; the payloads of all items are read for new ones, and other writes "
        "wait meanwhile.",
    )
    encoders: EncoderNames | None = Field(
        None,
        description="Names of encoders by modality, of those that `GET /limits` lists: the modality's features may "
        "then be given as texts or images. Left out: as they are. An object replaces them.",
    )
    keep: Literal["none", "float16", "int8"] | None = Field(
        None,
        description="Keep the features of items on disk, so that searches can `rescore`: two bytes or one for each "
        "number, and four for each vector. It stays as it was when the collection was created; `none` by default.",
    )


class EncoderInfo(Schema):
    """An encoder of the server."""

    takes: Literal["text", "image"] = Field(description="Strings, or image files.")
    dim: int = Field(description="Length of the feature vectors that it makes.")


class CollectionInfo(Schema):
    """A collection."""

    name: str
    model: str = Field(description="Name of its model.")
    indexes: list[str] = Field(description="Payload keys whose values are indexed.")
    encoders: dict[str, str] = Field(description="Names of its encoders, by modality.")
    keep: Literal["none", "float16", "int8"] = Field(description="How the features of its items are kept.")
    state: Literal["ready", "loading", "failed"] = Field(
        description="`loading` after a start until all items are in memory; `failed` if that went wrong, see the log."
    )
    items: int | None = Field(description="Number of items; null until it is loaded.")
    databases: dict[str, int] | None = Field(description="Number of items in each database; null until it is loaded.")
    code_bytes: int | None = Field(description="Bytes of codes in all of them; null until it is loaded.")


class CollectionList(Schema):
    """All collections, by name."""

    collections: list[CollectionInfo]


class ReencodeRequest(Schema):
    """What a collection is to be encoded with."""

    model: Name = Field(
        description="Name of another model of the same modalities, in the same order, and of the same dimensions."
    )


class ModalityInfo(Schema):
    """A modality of a model."""

    dim: int = Field(description="Length of its feature vectors.")
    weight: float = Field(description="Its weight in fused items and queries.")


class ModelInfo(Schema):
    """A model. `GET /models/{name}?file=true` gives the file itself."""

    name: str
    checksum: str = Field(description="SHA-256 of the model file, in hex.")
    size: int = Field(description="Length of the model file in bytes.")
    created: str = Field(description="When the file was uploaded (ISO 8601, UTC).")
    bits: int = Field(description="Length of a code.")
    dim: int = Field(description="Dimension of the latent space.")
    metric: Literal["cosine", "euclidean"] = Field(description="What a search ranks by if it does not say otherwise.")
    modalities: dict[str, ModalityInfo]
    databases: list[str] = Field(description="Databases of a collection with this model.")
    losses: list[float] = Field(description="Training loss after each iteration.")
    collections: list[str] = Field(description="Collections that use it.")


class ModelList(Schema):
    """All models, by name."""

    models: list[ModelInfo]


class Status(Schema):
    """The answer of a probe."""

    status: Literal["alive", "ready"]


class Version(Schema):
    """What runs here."""

    name: Literal["ccq-search"]
    version: str


class CallerInfo(Schema):
    """Who asks, and what that caller may do."""

    name: str = Field(description="Of the API key, or the subject of the token; `anyone` where there are none.")
    scopes: list[Literal["search", "write", "admin"]] = Field(description="What is allowed; `admin` is all of it.")
    collections: list[str] | None = Field(description="Where it is allowed; null: everywhere.")
