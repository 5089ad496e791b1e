"""Filters as they are written in a request. What they mean is in `service.filters`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from service.places import shorten
from service.schemas.base import Schema, Several
from service.schemas.dialects import in_our_words
from service.schemas.names import ItemId

_DATE = re.compile(r"\d{4}-\d\d")
CLAUSES = ("must", "should", "must_not")
MAX_DEPTH = 16
MAX_CONDITIONS = 1000
MAX_VALUES = 100_000

# Pydantic puts the tag of a union's member into the place of an error; the brackets tell it from a key.
TAGS = {kind: f"<{kind}>" for kind in ("match", "range", "exists", "ids", "filter")}


def _check_scalar(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ValueError(f"expected a string, a number, true, false or null, got {shorten(value)}")


def _check_number(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    date = isinstance(value, str) and _DATE.match(value)
    advice = "; dates can be compared as numbers alone, such as seconds since 1970" if date else ""
    raise ValueError(f"expected a number, got {shorten(value)}{advice}")


Scalar = Annotated[
    Any, AfterValidator(_check_scalar), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})
]
Number = Annotated[Any, AfterValidator(_check_number), WithJsonSchema({"type": "number"})]
Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="Path into the payload: `a.b` is key `b` of the object under `a`. Where a value on the way, or at "
        "the end, is an array, any of its elements may match. A key that itself has a dot in it cannot be named.",
    ),
]


class Match(Schema):
    """Equality with one value, or with any of several. 1 equals 1.0; true equals only true."""

    value: Scalar = Field(None, description="The value to equal.")
    any: Several[Scalar] | None = Field(None, description="Values of which one is to be equalled.")

    @model_validator(mode="before")
    @classmethod
    def _an_object(cls, data: Any) -> Any:
        if not isinstance(data, (dict, cls)):
            raise ValueError(f'expected {{"value": ...}} or {{"any": [...]}}, got {shorten(data)}')  # noqa: TRY004
        return data

    @classmethod
    def _meant(cls, key: str, data: dict[str, Any]) -> str:
        excluded = '; values are excluded by {"any": [...]} under must_not' if key == "except" else ""
        return super()._meant(key, data) + excluded

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if len(self.model_fields_set) != 1 or (self.any is None and "any" in self.model_fields_set):
            raise ValueError("expected exactly one of value and any (a list)")
        return self


class Range(Schema):
    """Bounds of a number; all that are given have to hold. Only numbers are in a range."""

    gt: Number = Field(None, description="Greater than.")
    gte: Number = Field(None, description="Greater than or equal to.")
    lt: Number = Field(None, description="Less than.")
    lte: Number = Field(None, description="Less than or equal to.")

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("expected at least one of gt, gte, lt, lte")
        return self


class MatchCondition(Schema):
    """A value in the payload equals one that is given."""

    key: Key
    match: Match


class RangeCondition(Schema):
    """A number in the payload lies in a range."""

    key: Key
    range: Range


class ExistsCondition(Schema):
    """The payload has something under the key, be it `null`; with `false`: it has nothing there."""

    key: Key
    exists: bool


class IdsCondition(Schema):
    """The item's id is one of these."""

    ids: Several[ItemId]


class Filter(Schema):
    """All of `must`, none of `must_not` and, where `should` has conditions, at least one of them.

    A condition may be a filter itself. A filter without conditions allows everything.
    """

    must: Several[Condition] = Field(default_factory=list, description="All of these have to hold.")
    should: Several[Condition] = Field(default_factory=list, description="At least one has to hold, if there are any.")
    must_not: Several[Condition] = Field(default_factory=list, description="None of these may hold.")

    @classmethod
    def _meant(cls, key: str, data: dict[str, Any]) -> str:
        expected, here = super()._meant(key, data), in_our_words(data, cls.model_validate)
        return expected if here is None or expected.endswith("?") else f"{expected}; here it would be {here}"


def _kind(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    for kind in ("match", "range", "exists", "ids"):
        if kind in value:
            return TAGS[kind]
    return None if "key" in value else TAGS["filter"]


Condition = Annotated[
    Annotated[MatchCondition, Tag(TAGS["match"])]
    | Annotated[RangeCondition, Tag(TAGS["range"])]
    | Annotated[ExistsCondition, Tag(TAGS["exists"])]
    | Annotated[IdsCondition, Tag(TAGS["ids"])]
    | Annotated[Filter, Tag(TAGS["filter"])],
    Discriminator(
        _kind,
        custom_error_type="condition",
        custom_error_message="expected {key, match}, {key, range}, {key, exists}, {ids}, or a filter of must, should "
        "and must_not",
    ),
]

Filter.model_rebuild()


def _check_extent(given: Any) -> Any:
    """Refuse a filter that is too large, whatever is in it, before anything in it is checked."""
    if not isinstance(given, (dict, Filter)):
        raise ValueError(f"expected an object of {', '.join(CLAUSES)}, got {shorten(given)}")  # noqa: TRY004
    conditions = values = 0
    pending = [(given, 0)]
    while pending:
        current, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"expected filters nested at most {MAX_DEPTH} deep, got more")
        if not isinstance(current, dict):
            continue
        inner = [condition for clause in CLAUSES for condition in _list(current, clause)]
        conditions += len(inner)
        values += len(_list(current, "ids")) + len(_list(current.get("match"), "any"))
        if conditions > MAX_CONDITIONS:
            raise ValueError(f"expected at most {MAX_CONDITIONS} conditions, got more")
        if values > MAX_VALUES:
            raise ValueError(f"expected at most {MAX_VALUES} ids and values, got more")
        pending.extend((condition, depth + 1) for condition in inner)
    return given


def _list(value: Any, key: str) -> list[Any]:
    """The list under a key, or an empty one if there is no list."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


CheckedFilter = Annotated[Filter, BeforeValidator(_check_extent)]
"""A filter in a request."""
