"""Payloads: any JSON object, stored as compact JSON so that it comes back as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from service.errors import Fault, InvalidRequestError
from service.places import Location, shorten

_HUGE = re.compile(rb"[0-9]e\+?(?:1[89]|[2-9][0-9]|[0-9]{3})")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


def dump_payloads(
    payloads: Sequence[Mapping[str, Any] | None], locate: Callable[[int], Location], body: bytes, limit: int
) -> list[bytes | None]:
    """Payloads as JSON.

    Parameters
    ----------
    payloads:
        Objects or None, as orjson read them from `body`.
    locate:
        From a payload's number to its place in the body.
    body:
        The request's body. Looked at again only where a payload has a number of 1e18 or more.
    limit:
        Most bytes that one may have.

    Raises
    ------
    InvalidRequestError
        Too long, nested too deeply, or with an integer of more than 64 bits, which would come back as another number.
    """
    dumped = [_dump(payload, locate, i, limit) for i, payload in enumerate(payloads)]
    huge = [i for i, data in enumerate(dumped) if data is not None and _HUGE.search(data)]
    if huge:
        # orjson reads an integer of more than 64 bits as a float; was it one, or a float from the start?
        exact = json.loads(body, parse_int=_Integer)
        for i in huge:
            place = locate(i)
            value = exact
            for step in place:
                value = value[step]
            _refuse_wide_integers(value, place)
    return dumped


class _Integer:
    """An integer of a body, not made a number: it may have a million digits."""

    def __init__(self, digits: str) -> None:
        self.digits = digits

    def is_wide(self) -> bool:
        return len(self.digits) > 20 or not _LEAST <= int(self.digits) <= _MOST


def _dump(payload: Mapping[str, Any] | None, locate: Callable[[int], Location], i: int, limit: int) -> bytes | None:
    if payload is None:
        return None
    try:
        data = orjson.dumps(payload)
    except orjson.JSONEncodeError:
        raise _refused(locate(i), "nested too deeply") from None
    if len(data) > limit:
        raise _refused(locate(i), f"expected at most {limit} bytes of JSON, got {len(data)}")
    return data


def _refuse_wide_integers(value: Any, place: Location) -> None:
    pending: list[tuple[Any, Location]] = [(value, place)]
    while pending:
        current, here = pending.pop()
        if isinstance(current, _Integer):
            if current.is_wide():
                raise _refused(
                    here, f"expected an integer of at most 64 bits, got {shorten(current.digits)}; send it as a string"
                )
        elif isinstance(current, dict):
            pending.extend((inner, (*here, key)) for key, inner in current.items())
        elif isinstance(current, list):
            pending.extend((inner, (*here, i)) for i, inner in enumerate(current))


def _refused(place: Location, reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault.at(place, reason)])
