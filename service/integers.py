"""Integers of more than 64 bits: orjson makes them floats, so they would come back, and compare, as others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from service.errors import Fault, InvalidRequestError
from service.places import Location, shorten

_HUGE = re.compile(rb"[0-9]e\+?(?:1[89]|[2-9][0-9]|[0-9]{3})")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


def has_huge_number(data: bytes) -> bool:
    """Whether JSON that was written from what orjson read may have a float of 1e18 or more: maybe once an integer."""
    return _HUGE.search(data) is not None


def refuse_wide_integers(body: bytes, places: Iterable[Location]) -> None:
    """Read a body again, number by number.

    Parameters
    ----------
    body:
        A request's body, which orjson could read.
    places:
        Where in it to look.

    Raises
    ------
    InvalidRequestError
        An integer of more than 64 bits is there, or the body is nested too deeply to tell.
    """
    try:
        exact = json.loads(body, parse_int=_Wide.or_zero, parse_float=lambda _: 0.0)
    except RecursionError:
        raise InvalidRequestError.from_faults([Fault.at((), "nested too deeply")]) from None
    for place in places:
        value = exact
        for step in place:
            value = value[step]
        _refuse(value, place)


class _Wide:
    """An integer of more than 64 bits, not made a number: it may have a million digits."""

    def __init__(self, digits: str) -> None:
        self.digits = digits

    @classmethod
    def or_zero(cls, digits: str) -> _Wide | int:
        """Zero stands for all others: there may be millions of them."""
        return cls(digits) if len(digits) > 20 or not _LEAST <= int(digits) <= _MOST else 0


def _refuse(value: Any, place: Location) -> None:
    pending: list[tuple[Any, Location]] = [(value, place)]
    while pending:
        current, here = pending.pop()
        if isinstance(current, _Wide):
            reason = f"expected an integer of at most 64 bits, got {shorten(current.digits)}; send it as a string"
            raise InvalidRequestError.from_faults([Fault.at(here, reason)])
        if isinstance(current, dict):
            pending.extend((inner, (*here, key)) for key, inner in current.items())
        elif isinstance(current, list):
            pending.extend((inner, (*here, i)) for i, inner in enumerate(current))
