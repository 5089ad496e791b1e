"""What a server takes: its settings that clients can run into, and what is the same everywhere."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, create_model

from service.body import MOST_BRACKETS
from service.schemas.admin import EncoderInfo
from service.schemas.base import Schema
from service.schemas.filters import MAX_CONDITIONS, MAX_DEPTH, MAX_VALUES
from service.schemas.names import MAX_ID_BYTES, MAX_IDEMPOTENCY_KEY
from service.settings import Settings

_SETTINGS = [
    name
    for name in Settings.model_fields
    if name.startswith("max_") or name in ("request_seconds", "search_threads", "write_threads")
]
_CONSTANT = {
    "max_brackets": (MOST_BRACKETS, "Most `[` and `{` in a body."),
    "max_id_bytes": (MAX_ID_BYTES, "Longest id, as UTF-8."),
    "max_idempotency_key": (MAX_IDEMPOTENCY_KEY, "Most characters of an `Idempotency-Key`."),
    "max_filter_conditions": (MAX_CONDITIONS, "Most conditions in a filter."),
    "max_filter_depth": (MAX_DEPTH, "Most levels of a filter."),
    "max_filter_values": (MAX_VALUES, "Most ids and values of `any` in a filter."),
}


def _model() -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name in _SETTINGS:
        setting = Settings.model_fields[name]
        fields[name] = (setting.annotation, Field(description=setting.description))
    for name, (_, description) in _CONSTANT.items():
        fields[name] = (int, Field(description=description))
    fields["dimensions"] = (
        dict[str, dict[str, int]],
        Field(description="Length of the feature vectors of each modality, for each collection that is loaded."),
    )
    fields["encoders"] = (
        dict[str, EncoderInfo],
        Field(description="The server's encoders, by name; see `encoders` of a collection."),
    )
    return create_model("Limits", __base__=Schema, __doc__="The limits of a server. Null is no limit.", **fields)


Limits = _model()


def limits(settings: Settings, dimensions: dict[str, dict[str, int]], encoders: dict[str, Any]) -> dict[str, Any]:
    """The limits of a server as `Limits`."""
    return {
        **{name: getattr(settings, name) for name in _SETTINGS},
        **{name: value for name, (value, _) in _CONSTANT.items()},
        "dimensions": dimensions,
        "encoders": encoders,
    }
