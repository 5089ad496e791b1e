"""Values in payloads: what is under a key path, and which of them are equal."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any


def values_at(payload: Any, steps: Sequence[str]) -> list[Any]:
    """What a payload has under a key path: values that are no arrays, and arrays as they are."""
    found = [payload]
    for step in steps:
        found = [value[step] for value in flat(found) if isinstance(value, dict) and step in value]
    return found


def scalars_at(payload: Any, steps: Sequence[str]) -> dict[Hashable, Any]:
    """The distinct values under a key path, with arrays taken apart and objects left out; by what equals them alone."""
    found: dict[Hashable, Any] = {}
    for value in flat(values_at(payload, steps)):
        if not isinstance(value, dict):
            found.setdefault(comparable(value), value)
    return found


def comparable(value: Any) -> Any:
    """The value so that only equals are equal: Python takes True for 1."""
    return ("boolean", value) if isinstance(value, bool) else value


def flat(values: list[Any]) -> list[Any]:
    """The values, with arrays replaced by their elements, and by theirs."""
    if not any(isinstance(value, list) for value in values):
        return values
    flat: list[Any] = []
    pending = values[::-1]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(reversed(value))
        else:
            flat.append(value)
    return flat
