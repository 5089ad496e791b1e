"""Requests and replies of searches."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from service.schemas.base import Schema, Several
from service.schemas.filters import CheckedFilter
from service.schemas.items import Features, Payload, TookMs
from service.schemas.names import ItemId

MAX_DATABASES = 1000


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
            "these for one merged ranking. By default `pair`, or the modality if the model has only one.",
        }
    ),
]


class SearchRequest(Schema):
    """A search: exactly one of `query`, `queries` and `query_id`."""

    query: Features | None = Field(
        None, description="Features of one query, by modality; several modalities make one fused query."
    )
    queries: Several[Features] | None = Field(None, min_length=1, description="Several queries, each as in `query`.")
    query_id: ItemId | None = Field(
        None,
        description="Search by a stored item: by its `pair` codes, else its only ones. It is never among the results.",
    )
    database: Databases | None = None
    limit: int = Field(10, ge=1, description="How many results; fewer come only where fewer items match.")
    filter: CheckedFilter | None = Field(None, description="Only items whose payload matches.")
    with_payload: bool = Field(True, description="Give the payload of each result.")
    metric: Literal["cosine", "euclidean"] | None = Field(None, description="By default the model's.")

    @model_validator(mode="after")
    def _one_query(self) -> Self:
        given = [name for name in ("query", "queries", "query_id") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"expected exactly one of query, queries and query_id, got {' and '.join(given) or 'none'}"
            )
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


class SearchReply(Schema):
    """Results, best first, ties in order of insertion. Exact with respect to the codes."""

    results: list[Hit] | list[list[Hit]] = Field(
        description="One list for `query` and `query_id`, a list of lists, one for each query, for `queries`."
    )
    took_ms: TookMs
