"""Requests and replies of searches."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    FiniteFloat,
    Tag,
    WithJsonSchema,
    model_validator,
)

from service.schemas.base import Schema, Several
from service.schemas.filters import CheckedFilter, Key
from service.schemas.items import Features, Payload, TookMs
from service.schemas.names import ItemId, check_id

MAX_DATABASES = 1000
MAX_KEYS = 100


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _distinct(names: list[str]) -> list[str]:
    if not names or len(set(names)) != len(names):
        raise ValueError("expected at least one name, and each once")
    return names


Databases = Annotated[
    Several[str],
    Field(max_length=MAX_DATABASES),
    BeforeValidator(_as_list),
    AfterValidator(_distinct),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
            "description": "Where to search: a modality's name, `pair` for items with several modalities, or a list of "
            "these for one merged ranking, which lists an item once for each database that it is found in. By default "
            "`pair`, or the modality if the model has only one.",
        }
    ),
]


def _check_example(value: Any) -> Any:
    if isinstance(value, dict):
        if not value:
            raise ValueError("expected features of at least one modality")
        return value
    return check_id(value)


Example = Annotated[ItemId | Features, BeforeValidator(_check_example)]
"""A stored item's id, or features."""


class QueryExamples(Schema):
    """What results are to be like, and what they are not to be like: ids of stored items, or features."""

    positive: Several[Example] = Field(min_length=1, description="Towards these. One that is given twice counts twice.")
    negative: Several[Example] = Field(default_factory=list, description="Away from these.")


# As in `service.schemas.filters`: what of a union is meant, taken out of the place of an error.
TAGS = {kind: f"<{kind}>" for kind in ("all", "keys")}


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return TAGS["all"]
    return TAGS["keys"] if isinstance(value, list) else None


WithPayload = Annotated[
    Annotated[bool, Tag(TAGS["all"])]
    | Annotated[Several[Key], Field(min_length=1, max_length=MAX_KEYS), Tag(TAGS["keys"])],
    Discriminator(
        _kind,
        custom_error_type="with_payload",
        custom_error_message="expected true, false, or a list of keys",
    ),
]
_QUERIES = ("query", "queries", "query_id", "query_by")
_APART = (
    ("queries", ("offset", "cursor", "group_by")),
    ("cursor", ("offset", "group_by", "rescore")),
    ("group_by", ("rescore",)),
)


class SearchRequest(Schema):
    """A search: exactly one of `query`, `queries`, `query_id` and `query_by`."""

    query: Features | None = Field(
        None, description="Features of one query, by modality; several modalities make one fused query."
    )
    queries: Several[Features] | None = Field(None, min_length=1, description="Several queries, each as in `query`.")
    query_id: ItemId | None = Field(
        None,
        description="Search by a stored item: by its `pair` codes, else its only ones. It is never among the results.",
    )
    query_by: QueryExamples | None = Field(
        None,
        description="Search by examples: by the mean of the positive ones minus the mean of the negative ones, each "
        "taken as a vector of length one in the latent space. Stored items among them are never among the results.",
    )
    database: Databases | None = None
    limit: int = Field(10, ge=1, description="How many results, or groups; fewer come only where fewer items match.")
    offset: int = Field(0, ge=0, description="How many results, or groups, to pass over. For a single query.")
    cursor: str | None = Field(
        None,
        description="`next_cursor` of the page before, to go on behind it. The rest of the request, but for `limit` "
        "and `with_payload`, has to be the same. For a single query.",
    )
    rescore: bool = Field(
        False,
        description="Rank the nearest by codes anew, by the features that the collection keeps: as an exact search of "
        "these would, as far as it finds the same. Not with `cursor` or `group_by`.",
    )
    oversampling: float = Field(
        4.0, ge=1, le=100, description="With `rescore`: how many times as many as are wanted are ranked anew."
    )
    score_threshold: FiniteFloat | None = Field(None, description="Only results with a score of at least this.")
    filter: CheckedFilter | None = Field(None, description="Only items whose payload matches.")
    group_by: Key | None = Field(
        None,
        description="Give the best groups of results with the same value under this key. An item with an array there "
        "is in the group of each element, an item without a value in none. For a single query.",
    )
    group_size: int = Field(1, ge=1, description="How many results a group has; fewer only where fewer items match.")
    with_payload: WithPayload = Field(
        True, description="Give the payload of each result, or of it only what these keys lead to."
    )
    metric: Literal["cosine", "euclidean"] | None = Field(None, description="By default the model's.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        given = [name for name in _QUERIES if getattr(self, name) is not None]
        if len(given) != 1:
            expected = f"{', '.join(_QUERIES[:-1])} and {_QUERIES[-1]}"
            raise ValueError(f"expected exactly one of {expected}, got {' and '.join(given) or 'none'}")
        for name, others in _APART:
            wrong = [other for other in others if getattr(self, other)] if getattr(self, name) else []
            if wrong:
                raise ValueError(f"expected no {wrong[0]} together with {name}")
        if self.group_by is None and "group_size" in self.model_fields_set:
            raise ValueError("expected no group_size without group_by")
        if not self.rescore and "oversampling" in self.model_fields_set:
            raise ValueError("expected no oversampling without rescore")
        return self


class Hit(Schema):
    """One result."""

    id: str
    database: str = Field(description="The database in which it was found.")
    distance: float = Field(
        description="Lower is nearer. `cosine`: 1 - cosine similarity; `euclidean`: squared distance (AQD)."
    )
    score: float = Field(description="Higher is nearer. `cosine`: the similarity; `euclidean`: minus the distance.")
    payload: Payload = Field(None, description="Left out with `with_payload: false`.")


class HitGroup(Schema):
    """Results with one value under the key of `group_by`."""

    key: str | int | float | bool | None = Field(description="The value.")
    hits: list[Hit] = Field(description="Best first.")


class SearchReply(Schema):
    """Results, best first, ties in order of insertion. Exact with respect to the codes."""

    results: list[Hit] | list[list[Hit]] | list[HitGroup] = Field(
        description="One list for a single query; a list of lists, one for each query, for `queries`; groups, the one "
        "with the best result first, for `group_by`."
    )
    next_cursor: str | None = Field(
        None,
        description="`cursor` of the next page, or null after the last one. Left out for `queries` and `group_by`.",
    )
    took_ms: TookMs
