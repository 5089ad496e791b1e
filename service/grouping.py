"""Results by a value in their payloads: the best groups, each with its best hits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from service.errors import Fault, ReplyTooLargeError
from service.payloads import load_payload
from service.ranking import Ranking
from service.schemas.search import SearchRequest
from service.store.interface import Snapshot
from service.values import scalars_at

_FIRST_ROWS = 128  # cost hardly more than ten, and are often enough


@dataclass(frozen=True)
class Group:
    """Rows of a ranking whose items have one value.

    Attributes
    ----------
    value:
        The value.
    asked:
        Whether it is among the groups that are asked for, and not skipped.
    rows:
        Positions in the ranking, ascending.
    """

    value: Any
    asked: bool
    rows: list[int] = field(default_factory=list)


def rows_to_group(request: SearchRequest) -> int:
    """How deep to search for groups at first."""
    return max(_FIRST_ROWS, request.offset + request.limit * request.group_size)


def form_groups(
    rankings: Iterable[Ranking], request: SearchRequest, snapshot: Snapshot, max_bytes: int
) -> tuple[Ranking, list[Group]]:
    """The groups that a request asks for, best first, with the ranking that their rows are of.

    Parameters
    ----------
    rankings:
        Ever longer ones, until one is complete. No more are taken than it needs to fill all groups.
    request, snapshot:
        A request with `group_by`, and where payloads are.
    max_bytes:
        How long the values of the groups may be together.

    Raises
    ------
    ReplyTooLargeError
        They are longer.
    StorageError
        A payload is damaged.
    """
    steps = (request.group_by or "").split(".")
    groups: dict[Hashable, Group] = {}
    done, unfilled = 0, request.limit
    for ranking in rankings:
        for row in range(done, len(ranking)):
            for same, value in _values(int(ranking.seqs[row]), steps, snapshot).items():
                if same not in groups:
                    if len(groups) == request.offset + request.limit:
                        continue
                    max_bytes -= len(orjson.dumps(value))
                    if max_bytes < 0:
                        raise _too_large()
                    groups[same] = Group(value, asked=len(groups) >= request.offset)
                group = groups[same]
                if len(group.rows) < request.group_size:
                    group.rows.append(row)
                    unfilled -= group.asked and len(group.rows) == request.group_size
            if unfilled == 0:
                return ranking, _asked(groups)
        done = len(ranking)
    return ranking, _asked(groups)


def _asked(groups: dict[Hashable, Group]) -> list[Group]:
    return [group for group in groups.values() if group.asked]


def _values(seq: int, steps: list[str], snapshot: Snapshot) -> dict[Hashable, Any]:
    """The values of one item. Of one at a time: a payload may have thousands."""
    ((_, item_id, payload),) = snapshot.texts([seq], True)
    return scalars_at(load_payload(item_id, payload), steps)


def _too_large() -> ReplyTooLargeError:
    fault = Fault.at(("group_by",), "the values of the groups are too long for one reply: ask for fewer groups")
    return ReplyTooLargeError.from_faults([fault])
