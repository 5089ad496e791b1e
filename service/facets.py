"""How often which values occur in payloads: what POST /facets does, without HTTP."""

from __future__ import annotations

import heapq
import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from service.body import parse
from service.collection import Collection
from service.errors import Fault, InvalidRequestError, TooManyValuesError
from service.filters import compile_filter
from service.items import reply_bytes, took_ms
from service.payloads import load_payload
from service.schemas.facets import FacetRequest
from service.settings import Settings
from service.values import scalars_at

_KINDS = {type(None): 0, bool: 1, int: 2, float: 2, str: 3}


def count_values(collection: Collection, body: bytes, settings: Settings) -> dict[str, Any]:
    """Answer a `FacetRequest`, as of one moment.

    Raises
    ------
    RequestError
        Any of those about bodies and filters, and TooManyValuesError.
    UnavailableError
        From the store; StorageError if a payload is damaged.
    """
    start = time.perf_counter()
    request = parse(body, FacetRequest)
    if request.limit > settings.max_limit:
        fault = Fault.at(("limit",), f"expected at most {settings.max_limit}, got {request.limit}")
        raise InvalidRequestError.from_faults([fault])
    matches = None if request.filter is None else compile_filter(request.filter, body)
    with collection.read() as (_, snapshot):
        rows = snapshot.scan(True) if matches is None else snapshot.texts(matches.seqs(snapshot).tolist(), True)
        counts = _Counts(settings.max_facet_values, settings.max_reply_bytes)
        counts.add(rows, request.key.split("."))
    best = heapq.nsmallest(request.limit, counts.values.values(), key=_order)
    return {
        "values": [{"value": value, "count": count} for value, count in best],
        "total": counts.total,
        "missing": counts.missing,
        "took_ms": took_ms(start),
    }


@dataclass
class _Counts:
    """Values, how often each occurs, and how many more may come.

    Attributes
    ----------
    most_values, most_bytes:
        How many distinct values there may be, and how long they may be together.
    values:
        Value and count, by what equals the value alone.
    total, missing:
        Number of items, and of those without a value.
    """

    most_values: int
    most_bytes: int
    values: dict[Hashable, tuple[Any, int]] = field(default_factory=dict)
    total: int = 0
    missing: int = 0

    def add(self, rows: Iterable[tuple[int, str, bytes | None]], steps: list[str]) -> None:
        """Count the values of items, given by seq, id and payload; TooManyValuesError if there are too many."""
        size = 0
        for _, item_id, payload in rows:
            found = scalars_at(load_payload(item_id, payload), steps)
            self.total += 1
            self.missing += not found
            for same, value in found.items():
                if same not in self.values:
                    size += reply_bytes(value if isinstance(value, str) else "", None)
                    if len(self.values) == self.most_values or size > self.most_bytes:
                        self._refuse()
                first, count = self.values.get(same, (value, 0))
                self.values[same] = first, count + 1

    def _refuse(self) -> None:
        reason = (
            f"expected at most {self.most_values} distinct values, of {self.most_bytes} bytes together, got more: "
            "filter for fewer items"
        )
        raise TooManyValuesError.from_faults([Fault.at(("key",), reason)])


def _order(entry: tuple[Any, int]) -> tuple[int, int, Any]:
    """The most frequent first; then null, false, true, numbers and strings, each kind in its own order."""
    value, count = entry
    return -count, _KINDS[type(value)], 0 if value is None else value
