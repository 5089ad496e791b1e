"""What filters mean: `service.schemas.filters` as a predicate on an item's id and payload.

A key is a path, ``a.b``. Where a value on the way or at its end is an array, any of its elements may match. Numbers
compare as numbers, 1 equals 1.0 and all 64 bits count; a boolean is no number. What has no value under a key matches
neither `match` nor `range`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from service.integers import has_huge_number, refuse_wide_integers
from service.payloads import load_payload
from service.schemas.filters import (
    CLAUSES,
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
        return self._test(item_id, load_payload(item_id, payload) if self.needs_payload else None)

    def seqs(self, snapshot: Snapshot) -> list[int]:
        """Ascending sequence numbers of the items that match."""
        return [seq for seq, item_id, payload in snapshot.scan(self.needs_payload) if self(item_id, payload)]


def compile_filter(given: Filter, body: bytes) -> Predicate:
    """Make the filter of a request a predicate.

    Raises
    ------
    InvalidRequestError
        It has an integer of more than 64 bits, according to the request's body.
    """
    if has_huge_number(orjson.dumps(given, default=vars)):
        refuse_wide_integers(body, [("filter",)])
    needs_payload = any(not isinstance(condition, (IdsCondition, Filter)) for condition in _walk(given))
    return Predicate(_filter_test(given), needs_payload)


def has_gap(given: Filter) -> bool:
    """Whether a filter, or one in it, has no conditions, or a list no values: such a part holds always or never."""
    return any(_is_gap(condition) for condition in (given, *_walk(given)))


def values_at(payload: Any, steps: Sequence[str]) -> list[Any]:
    """What a payload has under a key path: values that are no arrays, and arrays as they are."""
    found = [payload]
    for step in steps:
        found = [value[step] for value in _flat(found) if isinstance(value, dict) and step in value]
    return found


def scalars_at(payload: Any, steps: Sequence[str]) -> dict[Hashable, Any]:
    """The distinct values under a key path, with arrays taken apart and objects left out; by what equals them alone."""
    found: dict[Hashable, Any] = {}
    for value in _flat(values_at(payload, steps)):
        if not isinstance(value, dict):
            found.setdefault(_comparable(value), value)
    return found


def _walk(given: Filter) -> Iterator[Condition]:
    """All conditions of a filter, and of the filters in it."""
    for clause in CLAUSES:
        for condition in getattr(given, clause):
            yield condition
            if isinstance(condition, Filter):
                yield from _walk(condition)


def _is_gap(condition: Condition) -> bool:
    if isinstance(condition, Filter):
        return not any(getattr(condition, clause) for clause in CLAUSES)
    if isinstance(condition, MatchCondition):
        return condition.match.any == []
    return isinstance(condition, IdsCondition) and not condition.ids


def _filter_test(given: Filter) -> Test:
    must, should, must_not = ([_condition_test(c) for c in getattr(given, clause)] for clause in CLAUSES)

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
    steps = condition.key.split(".")
    if isinstance(condition, ExistsCondition):
        wanted = condition.exists
        return lambda _, payload: bool(values_at(payload, steps)) is wanted
    holds = _match_test(condition.match) if isinstance(condition, MatchCondition) else _range_test(condition.range)
    return lambda _, payload: any(holds(value) for value in _flat(values_at(payload, steps)))


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
