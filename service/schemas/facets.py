"""Requests and replies of facets."""

from __future__ import annotations

from pydantic import Field

from service.schemas.base import Schema
from service.schemas.filters import CheckedFilter, Key
from service.schemas.items import TookMs


class FacetRequest(Schema):
    """Which values to count, and over which items."""

    key: Key
    filter: CheckedFilter | None = Field(None, description="Only items whose payload matches; by default all.")
    limit: int = Field(10, ge=1, description="How many values; fewer come only where fewer exist.")


class FacetValue(Schema):
    """A value and how many items have it."""

    value: str | int | float | bool | None
    count: int


class FacetReply(Schema):
    """The most frequent values; of equally frequent ones null, false, true, numbers and strings, each in order.

    Exact. An item with an array counts once for each distinct element. Objects are no values.
    """

    values: list[FacetValue]
    total: int = Field(description="Number of items, of those that match if there is a filter.")
    missing: int = Field(description="How many of these have no value under the key.")
    took_ms: TookMs
