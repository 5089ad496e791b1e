"""The base of all schemas."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Schema(BaseModel):
    """Strict: no unknown keys, and no value that is turned into another kind of value."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
