"""The base of all schemas, and the list that they use."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

T = TypeVar("T")

Several = Annotated[list[T], Field(fail_fast=True)]
"""A list that is looked at up to its first fault: a million faults would cost a gigabyte, and tell no more."""

UNKNOWN_KEY = "unknown_key"
"""Kind of the error about a key that a schema does not have: `key` of its context."""

_LONGEST = 64
_ALIKE = 0.7  # with the usual 0.6 "vector" is like "rescore"


class Schema(BaseModel):
    """Strict: no unknown keys, and no value that is turned into another kind of value."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, data: Any) -> Any:
        """Refuse the first unknown key, of however many, and say what there is instead."""
        if cls.model_config["extra"] != "forbid":
            return data
        if isinstance(data, dict) and not data.keys() <= cls.model_fields.keys():
            key = next(key for key in data if key not in cls.model_fields)
            meant = cls._meant(key, data)
            raise PydanticCustomError(UNKNOWN_KEY, "unknown key, {meant}", {"key": key, "meant": meant})
        return data

    @classmethod
    def _meant(cls, key: str, data: dict[str, Any]) -> str:  # noqa: ARG003 (for those who know more of what is meant)
        """What there is instead of an unknown key of an object."""
        known = list(cls.model_fields)
        close = get_close_matches(key[:_LONGEST], known, 1, _ALIKE)
        return f"did you mean {close[0]!r}?" if close else f"expected {', '.join(known)}"
