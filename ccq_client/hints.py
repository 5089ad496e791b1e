"""What may be why nothing was found: hints, which nothing depends on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import orjson

from ccq_client.calls.call import to_json

SAMPLE = 100
"""How many items are looked at for the keys of their payloads."""


def empty_databases(collection: str, asked: Sequence[str] | None, databases: Mapping[str, int]) -> str:
    """Why a search in these databases (None: the default one) found nothing; empty where that is not why."""
    searched = asked or (("pair",) if "pair" in databases else tuple(databases)[:1])
    if not databases or any(databases.get(name) for name in searched):
        return ""
    if not any(databases.values()):
        return f"no results: collection {collection!r} has no items"
    holding = [name for name, items in databases.items() if items]
    counts = ", ".join(f"{name!r} ({databases[name]:,})" for name in holding)
    none = "database" if len(searched) == 1 else "databases"
    have = "has" if len(searched) == 1 else "have"
    default = "" if asked else ", the default,"
    return (
        f"no results: {none} {', '.join(map(repr, searched))}{default} of collection {collection!r} {have} no items. "
        f"Items are in {counts}: search with database={holding[0]!r}"
        + (". An item is in 'pair' if it has several modalities" if "pair" in searched else "")
    )


def keys_of_filter(filter_: Any) -> set[str]:
    """The keys of payloads that a filter names, which was sent, as what JSON has for it."""
    return set(_keys_of_conditions(orjson.loads(to_json(filter_))))


def misspelled(keys: Iterable[str], payloads: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Of some keys those that none of some payloads has, and that are like one that some have; with that one."""
    there = {key for payload in payloads for key in _keys_of_payload(payload, "")}
    folded = {key.casefold(): key for key in sorted(there)}
    for key in sorted(keys):
        near = [] if key in there else get_close_matches(key.casefold(), folded, 1, 0.75)
        if near:
            yield key, folded[near[0]]


def _keys_of_conditions(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("key"), str):
            yield part["key"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _keys_of_conditions(inner)


def _keys_of_payload(value: Any, before: str) -> Iterator[str]:
    """The keys in a payload as filters name them: ``a.b`` is b of the object under a, or of one in a list there."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{before}{key}"
            yield from _keys_of_payload(inner, f"{before}{key}.")
    elif isinstance(value, list):
        for inner in value:
            yield from _keys_of_payload(inner, before)
