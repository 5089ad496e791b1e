"""The base of all schemas, and the list that they use."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

T = TypeVar("T")

Several = Annotated[list[T], Field(fail_fast=True)]
"""A list that is looked at up to its first fault: a million faults would cost a gigabyte, and tell no more."""


class Schema(BaseModel):
    """Strict: no unknown keys, and no value that is turned into another kind of value."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _one_unknown_key(cls, data: Any) -> Any:
        """Of many unknown keys keep one, which is then refused, for the reason that `Several` has."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields):
            unknown = next(key for key in data if key not in cls.model_fields)
            return {key: data[key] for key in (*cls.model_fields, unknown) if key in data}
        return data
