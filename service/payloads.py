"""Payloads: any JSON object, stored as compact JSON so that it comes back as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from service.errors import Fault, InvalidRequestError, StorageError
from service.integers import has_huge_number, refuse_wide_integers
from service.places import Location, shorten


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
    huge = [i for i, data in enumerate(dumped) if data is not None and has_huge_number(data)]
    if huge:
        refuse_wide_integers(body, map(locate, huge))
    return dumped


def dump_lines(lines: Sequence[bytes | None], locate: Callable[[int], Location], limit: int) -> list[bytes | None]:
    """Payloads that are JSON texts of their own, as `dump_payloads` writes those of a body; None stays None.

    Raises
    ------
    InvalidRequestError
        Not an object or null, and what `dump_payloads` refuses.
    """
    dumped: list[bytes | None] = []
    for i, line in enumerate(lines):  # one by one: thousands of objects at a time would keep the garbage collector busy
        data = None if line is None else _dump(_loaded(line, locate, i), locate, i, limit)
        if line is not None and data is not None and has_huge_number(data):
            try:
                refuse_wide_integers(line, [()])
            except InvalidRequestError as error:
                raise _refused(locate(i), error.detail) from None
        dumped.append(data)
    return dumped


def load_payload(item_id: str, data: bytes | None) -> Any:
    """An item's stored payload; StorageError if it is no longer the JSON that was stored."""
    try:
        return None if data is None else orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise StorageError(f"item {shorten(item_id)}: its stored payload is damaged; index the item again") from error


def _loaded(line: bytes, locate: Callable[[int], Location], i: int) -> dict[str, Any] | None:
    try:
        payload = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _refused(locate(i), f"not valid JSON ({error})") from None
    if payload is not None and not isinstance(payload, dict):
        raise _refused(locate(i), f"expected a JSON object or null, got {shorten(payload)}")
    return payload


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


def _refused(place: Location, reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault.at(place, reason)])
