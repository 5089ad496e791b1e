"""What filters mean: `service.schemas.filters` as a predicate on an item's id and payload.

A key is a path, ``a.b``. Where a value on the way or at its end is an array, any of its elements may match. Numbers
compare as numbers, 1 equals 1.0 and all 64 bits count; a boolean is no number. What has no value under a key matches
neither `match` nor `range`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from service.errors import Fault, InvalidRequestError
from service.places import Location
from service.schemas.filters import (
    Condition,
    ExistsCondition,
    Filter,
    IdsCondition,
    Match,
    MatchCondition,
    Range,
)
from service.store.interface import Snapshot

Test = Callable[[str, Any], bool]

MAX_DEPTH = 16
MAX_CONDITIONS = 1000
_CLAUSES = ("must", "should", "must_not")
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


@dataclass(frozen=True)
class Predicate:
    """A filter, ready to be asked about items.

    Attributes
    ----------
    needs_payload:
        Whether it looks at payloads at all, or only at ids.
    """

    _test: Test
    needs_payload: bool

    def __call__(self, item_id: str, payload: bytes | None) -> bool:
        """Whether the item with this id and stored payload matches."""
        return self._test(item_id, orjson.loads(payload) if self.needs_payload and payload is not None else None)

    def seqs(self, snapshot: Snapshot) -> list[int]:
        """Ascending sequence numbers of the items that match."""
        return [seq for seq, item_id, payload in snapshot.scan(self.needs_payload) if self(item_id, payload)]


def compile_filter(given: Filter, location: Location) -> Predicate:
    """Make a filter a predicate.

    Raises
    ------
    InvalidRequestError
        Nested more than MAX_DEPTH deep, or more than MAX_CONDITIONS conditions.
    """
    needs_payload = False
    for count, (condition, place) in enumerate(_walk(given, location), 1):
        if count > MAX_CONDITIONS:
            raise InvalidRequestError.from_faults(
                [Fault.at(location, f"expected at most {MAX_CONDITIONS} conditions, got more")]
            )
        if len(place) - len(location) > 2 * MAX_DEPTH:
            raise InvalidRequestError.from_faults(
                [Fault.at(location, f"expected filters nested at most {MAX_DEPTH} deep, got more")]
            )
        needs_payload |= not isinstance(condition, (IdsCondition, Filter))
    return Predicate(_filter_test(given), needs_payload)


def is_empty(given: Filter) -> bool:
    """Whether a filter has no condition anywhere, so that it would match everything or nothing."""
    return all(isinstance(condition, Filter) for condition, _ in _walk(given, ()))


def values_at(payload: Any, key: str) -> list[Any]:
    """What a payload has under a key path: values that are no arrays, and arrays as they are."""
    found = [payload]
    for step in key.split("."):
        found = [value[step] for value in _flat(found) if isinstance(value, dict) and step in value]
    return found


def _walk(given: Filter, location: Location) -> Iterator[tuple[Condition, Location]]:
    """All conditions with their places, without recursion: a request decides how deep they go."""
    pending: list[tuple[Filter, Location]] = [(given, location)]
    while pending:
        current, place = pending.pop()
        for clause in _CLAUSES:
            for i, condition in enumerate(getattr(current, clause)):
                here = (*place, clause, i)
                yield condition, here
                if isinstance(condition, Filter):
                    pending.append((condition, here))


def _filter_test(given: Filter) -> Test:
    must, should, must_not = ([_condition_test(c) for c in getattr(given, clause)] for clause in _CLAUSES)

    def test(item_id: str, payload: Any) -> bool:
        return (
            all(holds(item_id, payload) for holds in must)
            and (not should or any(holds(item_id, payload) for holds in should))
            and not any(holds(item_id, payload) for holds in must_not)
        )

    return test


def _condition_test(condition: Condition) -> Test:
    if isinstance(condition, Filter):
        return _filter_test(condition)
    if isinstance(condition, IdsCondition):
        ids = frozenset(condition.ids)
        return lambda item_id, _: item_id in ids
    key = condition.key
    if isinstance(condition, ExistsCondition):
        wanted = condition.exists
        return lambda _, payload: bool(values_at(payload, key)) is wanted
    holds = _match_test(condition.match) if isinstance(condition, MatchCondition) else _range_test(condition.range)
    return lambda _, payload: any(holds(value) for value in _flat(values_at(payload, key)))


def _match_test(match: Match) -> Callable[[Any], bool]:
    wanted = frozenset(map(_comparable, [match.value] if match.any is None else match.any))
    return lambda value: not isinstance(value, dict) and _comparable(value) in wanted


def _range_test(bounds: Range) -> Callable[[Any], bool]:
    tests = [(_BOUNDS[name], getattr(bounds, name)) for name in bounds.model_fields_set]
    return lambda value: (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and all(compare(value, bound) for compare, bound in tests)
    )


def _comparable(value: Any) -> Any:
    """The value so that only equals are equal: Python takes True for 1."""
    return ("boolean", value) if isinstance(value, bool) else value


def _flat(values: list[Any]) -> list[Any]:
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
