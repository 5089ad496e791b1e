"""Requests and replies about items."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, WithJsonSchema, model_validator

from service.schemas.base import Schema, Several
from service.schemas.filters import CheckedFilter
from service.schemas.names import ItemId


def _only(key: str, value: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object with one string."""
    properties = {key: {"type": "string", **value}}
    return {"type": "object", "properties": properties, "required": [key], "additionalProperties": False}


Vector = Annotated[
    Any,  # checked by service.features, many at a time
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "number"}},
                {"type": "string", "description": "Base64 of little-endian float32, or a text to encode."},
                _only("text", {"description": "A text to encode."}),
                _only("base64", {"contentEncoding": "base64", "description": "An image file to encode."}),
            ],
            "description": "A feature vector: a list of numbers, or a base64 string of little-endian float32. As long "
            "as the model's dimension for this modality; no NaN, nothing beyond ±1e15. Where the collection has an "
            "encoder for the modality, what it makes one of: a text, as any other string or as an object, or an image.",
        }
    ),
]
Features = Annotated[
    dict[str, Vector],
    Field(
        min_length=1,
        description="Feature vectors, or what they are made of, by modality. One or several of the model's modalities.",
    ),
]
ItemCodes = Annotated[
    dict[str, str],
    Field(
        description="Code rows by database, in base64: one for each of the item's modalities and, if it has several, "
        "`pair`; as `GET /items?with_codes=true` gives them."
    ),
]
TookMs = Annotated[float, Field(description="Milliseconds that the work took, without network and queue.")]
Payload = Annotated[
    dict[str, Any] | None,
    Field(description="Any JSON object. It comes back exactly as it was given, and filters look into it."),
]


Version = Annotated[int, Field(description="The collection's version when the item was last written.")]


class Item(Schema):
    """An item to index."""

    id: ItemId
    features: Features | None = None
    codes: ItemCodes | None = Field(
        None,
        description="Instead of features: codes that a collection of the same model made of them. Every item of a "
        "request has codes, or none. A collection that keeps features needs those as well.",
    )
    payload: Payload = None
    if_version: int | None = Field(
        None,
        ge=0,
        description="The `version` that the stored item of this id must have; 0: only if there is none. If it has "
        "another, nothing is stored.",
    )


class IndexRequest(Schema):
    """Items to index. An item whose id is known replaces the old one, and counts as newly inserted."""

    items: Several[Item] = Field(min_length=1, description="Indexed together or, if any is refused, not at all.")
    model_checksum: str | None = Field(
        None,
        description="With `codes`: the `checksum` of the model that made them, which has to be the collection's.",
    )


class IndexReply(Schema):
    """The items are on disk, and every search that starts now sees them."""

    indexed: int = Field(description="Number of items.")
    took_ms: TookMs


class DeleteRequest(Schema):
    """What to delete: exactly one of `ids` and `filter`."""

    ids: Several[ItemId] | None = Field(None, description="Ids; those that no item has are passed over.")
    filter: CheckedFilter | None = Field(
        None,
        description="All items that match. Refused if it, or a filter in it, has no conditions, or a list in it no "
        "values: that would match everything or nothing.",
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("expected exactly one of ids and filter")
        return self


class DeleteReply(Schema):
    """The items are gone, from disk and from every search that starts now."""

    deleted: int = Field(description="Number of items.")
    took_ms: TookMs


class PayloadReply(Schema):
    """The payload is on disk, and every search that starts now sees it."""

    id: str
    version: Version
    took_ms: TookMs


class StoredItem(Schema):
    """An item as it is stored."""

    id: str
    version: Version
    payload: Payload
    databases: list[str] = Field(
        description="Databases that hold the item: its modalities and, if it has several, `pair`."
    )


class ListedItem(StoredItem):
    """An item of a page."""

    codes: ItemCodes | None = Field(None, description="Only `with_codes`: code rows by database, in base64.")
    features: dict[str, str] | None = Field(
        None,
        description="Only `with_features`: kept features by modality, base64 of little-endian float32; with the "
        "precision that they are kept with.",
    )


class ItemPage(Schema):
    """Items in order of insertion."""

    items: list[ListedItem]
    next_cursor: str | None = Field(description="`cursor` of the next page, or null after the last one.")
    model: str = Field(description="The collection's model as it was then: what codes are by.")
    total: int = Field(description="Number of items, of those that match if there is a filter.")


class ListRequest(Schema):
    """Which items to list, and what to tell of each."""

    filter: CheckedFilter | None = Field(None, description="Only items that match; by default all.")
    limit: int = Field(100, ge=0, description="How many items a page has; fewer if they are long. 0: count alone.")
    cursor: str | None = Field(None, description="`next_cursor` of the page before.")
    with_codes: bool = Field(False, description="Give the code rows of items.")
    with_features: bool = Field(False, description="Give the features of items, for collections that keep them.")
