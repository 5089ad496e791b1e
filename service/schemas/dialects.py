"""Filters in the words of other databases, put into those of this one: for messages to people who come from there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

_BOUNDS = ("gt", "gte", "lt", "lte")
_MATCHES = {"eq": ("must", "value"), "value": ("must", "value"), "in": ("must", "any"), "any": ("must", "any")}
_MATCHES |= {"ne": ("must_not", "value"), "nin": ("must_not", "any"), "except": ("must_not", "any")}
_CLAUSES = {"$and": "must", "$or": "should", "must": "must", "should": "should", "must_not": "must_not"}
_MOST_DEPTH = 3
_MOST_ENTRIES = 8  # of one object or list: what is longer would not fit into a message
_MOST_TEXT = 200

_Part = tuple[str, dict[str, Any]]  # a clause, and a condition that belongs there


class _UnclearError(Exception):
    """Nobody can tell what is meant."""


def in_our_words(given: Any, check: Callable[[Any], object]) -> str | None:
    """JSON of the filter that is probably meant by one in other words; None where that is unclear, or long.

    `check` raises ValueError where it is no filter.
    """
    try:
        found = _filter(given, 0)
        check(found)
    except (_UnclearError, ValueError):
        return None
    text = json.dumps(found, ensure_ascii=False)
    return text if len(text) <= _MOST_TEXT else None


def _filter(given: Any, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for clause, condition in _parts(given, depth):
        found.setdefault(clause, []).append(condition)
    if not found:
        raise _UnclearError
    return found


def _condition(given: Any, depth: int) -> dict[str, Any]:
    """A filter as a condition: where it is of one condition alone, that."""
    found = _filter(given, depth)
    must: list[dict[str, Any]] = found.get("must", [])
    return must[0] if len(found) == len(must) == 1 else found


def _parts(given: Any, depth: int) -> Iterator[_Part]:
    if not isinstance(given, dict) or not 0 < len(given) <= _MOST_ENTRIES or depth > _MOST_DEPTH:
        raise _UnclearError
    named = given.get("key", given.get("field"))
    if isinstance(named, str):
        yield from _of_key(named, {word: value for word, value in given.items() if word not in ("key", "field")})
        return
    for word, value in given.items():
        if word in _CLAUSES and isinstance(value, list) and len(value) <= _MOST_ENTRIES:
            yield from ((_CLAUSES[word], _condition(part, depth + 1)) for part in value)
        elif word in ("ids", "has_id") and isinstance(value, list):
            yield "must", {"ids": value}
        elif word == "is_empty" and isinstance(value, dict) and isinstance(value.get("key"), str):
            yield "must", {"key": value["key"], "exists": False}
        elif word.startswith("$"):
            raise _UnclearError
        else:
            yield from _of_key(word, value)


def _of_key(key: str, given: Any) -> Iterator[_Part]:
    """What is asked of one key of the payload: a value, several, or operators."""
    if isinstance(given, list):
        yield _matched(key, "any", given)
    elif not isinstance(given, dict):
        yield _matched(key, "value", given)
    else:
        bounds = {word.removeprefix("$"): bound for word, bound in given.items() if word.removeprefix("$") in _BOUNDS}
        if bounds:
            yield "must", {"key": key, "range": bounds}
        elif not given:
            raise _UnclearError
        for word, value in given.items():
            operator = word.removeprefix("$")
            if operator in ("match", "range"):
                yield from _of_key(key, value)
            elif operator == "exists":
                yield "must", {"key": key, "exists": value}
            elif operator in _MATCHES:
                yield _matched(key, operator, value)
            elif operator not in _BOUNDS:
                raise _UnclearError


def _matched(key: str, operator: str, value: Any) -> _Part:
    clause, how = _MATCHES[operator]
    return clause, {"key": key, "match": {how: value}}
