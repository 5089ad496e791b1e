"""What the client returns of the service itself: what a request may be, and who asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ccq_client.results import make


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


def limits_of(data: Mapping[str, Any]) -> Limits:
    """Limits of the JSON of a reply."""
    encoders = {name: make(Encoder, entry) for name, entry in data.get("encoders", {}).items()}
    return make(Limits, data, encoders=encoders)


def caller_of(data: Mapping[str, Any]) -> Caller:
    """Who asks, of the JSON of a reply."""
    return make(Caller, data)
