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

import numpy as np
import orjson

from service.candidates import candidates
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
from service.store.interface import Seqs, Snapshot
from service.values import comparable, flat, values_at

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
    given:
        The filter itself.
    text:
        The same as JSON.
    needs_payload:
        Whether it looks at payloads at all, or only at ids.
    """

    given: Filter
    text: bytes
    _test: Test
    needs_payload: bool

    def __call__(self, item_id: str, payload: bytes | None) -> bool:
        """Whether the item with this id and stored payload matches."""
        return self._test(item_id, load_payload(item_id, payload) if self.needs_payload else None)

    def seqs(self, snapshot: Snapshot) -> Seqs:
        """Ascending sequence numbers of the items that match. Payloads are read only where indexes do not tell."""
        found = candidates(self.given, snapshot)
        if found is not None and found.exact:
            return found.seqs
        if found is None:
            texts = snapshot.scan(self.needs_payload)
        else:
            texts = snapshot.texts(found.seqs.tolist(), self.needs_payload)
        matching = (seq for seq, item_id, payload in texts if self(item_id, payload))
        return np.sort(np.fromiter(matching, dtype=np.int64))


def compile_filter(given: Filter, body: bytes) -> Predicate:
    """Make the filter of a request a predicate.

    Raises
    ------
    InvalidRequestError
        It has an integer of more than 64 bits, according to the request's body.
    """
    text = orjson.dumps(given, default=vars)
    if has_huge_number(text):
        refuse_wide_integers(body, [("filter",)])
    needs_payload = any(not isinstance(condition, (IdsCondition, Filter)) for condition in _walk(given))
    return Predicate(given, text, _filter_test(given), needs_payload)


def has_gap(given: Filter) -> bool:
    """Whether a filter, or one in it, has no conditions, or a list no values: such a part holds always or never."""
    return any(_is_gap(condition) for condition in (given, *_walk(given)))


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
    return lambda _, payload: any(holds(value) for value in flat(values_at(payload, steps)))


def _match_test(match: Match) -> Callable[[Any], bool]:
    wanted = frozenset(map(comparable, [match.value] if match.any is None else match.any))
    return lambda value: not isinstance(value, dict) and comparable(value) in wanted


def _range_test(bounds: Range) -> Callable[[Any], bool]:
    tests = [(_BOUNDS[name], getattr(bounds, name)) for name in bounds.model_fields_set]
    return lambda value: (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and all(compare(value, bound) for compare, bound in tests)
    )
