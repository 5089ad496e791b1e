"""What declared keys tell of a filter, without a look at any payload."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from service.schemas.filters import Condition, ExistsCondition, Filter, IdsCondition, MatchCondition, RangeCondition
from service.store.interface import Seqs, Snapshot


@dataclass(frozen=True)
class Candidates:
    """Items of which all that match are some.

    Attributes
    ----------
    seqs:
        Ascending sequence numbers.
    exact:
        Whether all of them match.
    """

    seqs: Seqs
    exact: bool


def candidates(given: Filter, snapshot: Snapshot) -> Candidates | None:
    """What can be told of a filter; None where any item may match."""
    must = [_of_condition(condition, snapshot) for condition in given.must]
    should = [_of_condition(condition, snapshot) for condition in given.should]
    must_not = [_of_condition(condition, snapshot) for condition in given.must_not]
    known = [found for found in must if found is not None]
    exact = len(known) == len(must)
    any_of = [found for found in should if found is not None]
    if should and len(any_of) == len(should):
        known.append(Candidates(_union(found.seqs for found in any_of), all(found.exact for found in any_of)))
    exact &= len(any_of) == len(should)
    if not known:
        return None
    seqs = reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), sorted((f.seqs for f in known), key=len))
    for found in must_not:
        if found is not None and found.exact:
            seqs = np.setdiff1d(seqs, found.seqs, assume_unique=True)
        else:
            exact = False
    return Candidates(seqs, exact and all(found.exact for found in known))


def _of_condition(condition: Condition, snapshot: Snapshot) -> Candidates | None:
    match condition:
        case Filter():
            return candidates(condition, snapshot)
        case IdsCondition():
            return Candidates(snapshot.named(condition.ids), exact=True)
        case MatchCondition(key=key, match=match):
            found = snapshot.having(key, [match.value] if match.any is None else match.any)
        case RangeCondition(key=key, range=bounds):
            within = snapshot.within(key, {name: getattr(bounds, name) for name in bounds.model_fields_set})
            return None if within is None else Candidates(*within)
        case ExistsCondition(key=key, exists=True):
            found = snapshot.existing(key)
        case _:
            return None
    return None if found is None else Candidates(found, exact=True)


def _union(parts: Iterable[Seqs]) -> Seqs:
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts]))
