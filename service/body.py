"""Request bodies: read with a limit on the event loop, parsed and checked in a worker thread.

FastAPI would parse on the event loop, where one large body would stall every other request. So routes take the raw
request, and `json_body` puts the body's schema into the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson
from anyio import to_thread
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import ClientDisconnect, Request

from service.admission import share_of
from service.disk import check_room, disk_errors
from service.errors import (
    BodyTooLargeError,
    ClientGoneError,
    EmptyBodyError,
    EncodingError,
    Fault,
    InvalidJsonError,
    InvalidRequestError,
    MediaTypeError,
)
from service.headers import header
from service.places import Location, shorten
from service.schemas import filters, search
from service.schemas.base import UNKNOWN_KEY
from service.schemas.names import told

T = TypeVar("T", bound=BaseModel)

_JSON = re.compile(r"application/(?:[a-z0-9.-]+\+)?json", re.IGNORECASE)
_NOT_A_NUMBER = re.compile(r"-?(?:NaN|Infinity)")
_TAGS = frozenset((*filters.TAGS.values(), *search.TAGS.values()))
MOST_BRACKETS = 1 << 20  # a list or an object of three bytes takes a hundred in memory
# What a body takes in memory until it is dealt with, in its own lengths: with all that is made of it.
_JSON_MEMORY = 12
_FILE_MEMORY = 3
_SAVED_BYTES = 1 << 20  # of a body on its way to the disk, that are written together

# Pydantic's messages speak of Python; these speak of JSON.
_MESSAGES = {
    "missing": "missing",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "dict_type": "expected an object",
    "list_type": "expected a list",
    "string_type": "expected a string",
    "bool_type": "expected true or false",
    "too_short": "expected at least one",
    "too_long": "expected fewer",
}


async def read_json(request: Request, limit: int) -> bytes:
    """The bytes of a JSON body, not parsed yet.

    Raises
    ------
    MediaTypeError, EncodingError, BodyTooLargeError, EmptyBodyError, ClientGoneError, MemoryLimitError
    """
    kind = media_type(request)
    if not _JSON.fullmatch(kind):
        got = shorten(kind) if kind else "none"
        raise MediaTypeError(f"Content-Type: expected application/json, got {got}")
    return await _read(request, limit, _JSON_MEMORY)


async def read_file(request: Request, limit: int) -> bytes:
    """The bytes of a body of any kind; raises what `read_json` raises, except MediaTypeError."""
    return await _read(request, limit, _FILE_MEMORY)


def announced(request: Request, limit: int) -> int:
    """How long a body says that it is; 0 if it does not. EncodingError or BodyTooLargeError if it will not be taken."""
    encoding = header(request.scope, b"content-encoding").strip()
    if encoding.lower() not in ("", "identity"):
        raise EncodingError(f"Content-Encoding: expected none, got {shorten(encoding)}; send the body as it is")
    length = header(request.scope, b"content-length")
    if length.isdecimal() and (len(length) > 18 or int(length) > limit):
        raise BodyTooLargeError(f"expected a body of at most {limit} bytes, got one of {length[:40]}")
    return int(length) if length.isdecimal() else 0


async def chunks(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The parts of a body, as they come.

    Raises
    ------
    BodyTooLargeError, EmptyBodyError, ClientGoneError
    """
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise BodyTooLargeError(f"expected a body of at most {limit} bytes, got more")
            yield chunk
    except ClientDisconnect:
        raise ClientGoneError("the connection was closed before the body was complete") from None
    if not size:
        raise EmptyBodyError("expected a body, got none")


async def _read(request: Request, limit: int, memory: int) -> bytes:
    expected = announced(request, limit)
    share = share_of(request.scope)
    share.reserve(memory * expected)  # before anything of it is read
    body = bytearray()
    async for chunk in chunks(request, limit):
        body += chunk
        if len(body) > expected:  # it was not announced
            share.reserve(memory * (len(body) - expected))
            expected = len(body)
    return bytes(body)


async def save_file(request: Request, limit: int, file: Path, see: Callable[[bytes], object] | None = None) -> None:
    """Write a body of any kind to a new file, so that it takes no memory. `see` is called with each part of it.

    Raises
    ------
    EncodingError, BodyTooLargeError, EmptyBodyError, ClientGoneError
    StorageFullError, StorageError
    """
    check_room(file.parent, announced(request, limit), "the file")
    held = bytearray()
    with disk_errors("the file"), file.open("wb") as out:
        async for chunk in chunks(request, limit):
            held += chunk
            if see is not None:
                see(chunk)
            if len(held) >= _SAVED_BYTES:
                await to_thread.run_sync(out.write, bytes(held))
                held.clear()
        await to_thread.run_sync(out.write, bytes(held))


def media_type(request: Request) -> str:
    """What a body says that it is."""
    return header(request.scope, b"content-type").partition(";")[0].strip()


def parse(body: bytes, model: type[T], **longest: int) -> T:
    """A body as a checked request. Runs in a worker thread.

    Parameters
    ----------
    body, model:
        The body, and what it should be.
    longest:
        How many entries the lists under these keys may have. Seen to before any entry is looked at.

    Raises
    ------
    BodyTooLargeError
        Too many lists and objects.
    InvalidJsonError
        Not JSON; the detail says where.
    InvalidRequestError
        JSON, but not what `model` describes; the faults say where.
    """
    data = _load_bounded(body)
    if not isinstance(data, dict):
        raise InvalidRequestError.from_faults([Fault("#", f"expected an object, got {shorten(data)}")])
    for key, most in longest.items():
        given = data.get(key)
        if isinstance(given, list) and len(given) > most:
            reason = f"expected at most {most} {key}, got {len(given)}"
            raise InvalidRequestError.from_faults([Fault.at((key,), reason)])
    return validated(data, model)


def validated(data: Any, model: type[T]) -> T:
    """JSON as a checked request; InvalidRequestError if it is not what `model` describes, its faults say where."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidRequestError.from_faults(
            [_fault(_place(found), found["type"], told(found)) for found in error.errors(include_url=False)]
        ) from None


def load_payload_body(body: bytes) -> dict[str, Any] | None:
    """A body that is a payload: an object or null; raises what `parse` raises."""
    data = _load_bounded(body)
    if data is not None and not isinstance(data, dict):
        raise InvalidRequestError.from_faults([Fault("#", f"expected an object or null, got {shorten(data)}")])
    return data


def _load_bounded(body: bytes) -> Any:
    brackets = body.count(b"[") + body.count(b"{")
    if brackets > MOST_BRACKETS:
        raise BodyTooLargeError(f"expected at most {MOST_BRACKETS} brackets ([ or {{) in a body, got {brackets}")
    return load_json(body)


def load_json(body: bytes) -> Any:
    """The JSON value of a body; InvalidJsonError if it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if _NOT_A_NUMBER.match(error.doc, error.pos):
            raise InvalidJsonError(f"NaN and Infinity are not JSON: line {error.lineno} column {error.colno}") from None
        raise InvalidJsonError(f"not valid JSON: {error}") from None


def json_body(model: type[BaseModel], **examples: Any) -> dict[str, Any]:
    """The `openapi_extra` of a route that reads its body by `read_json` and `parse`."""
    return _documented({"$ref": f"#/components/schemas/{model.__name__}"}, examples)


def payload_body(**examples: Any) -> dict[str, Any]:
    """The `openapi_extra` of a route that reads its body by `read_json` and `load_payload_body`."""
    return _documented({"anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}]}, examples)


def _documented(schema: dict[str, Any], examples: Mapping[str, Any]) -> dict[str, Any]:
    content = {"schema": schema, "examples": {name: {"value": value} for name, value in examples.items()}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _place(found: ErrorDetails) -> Location:
    return (*found["loc"], found["ctx"]["key"]) if found["type"] == UNKNOWN_KEY else found["loc"]


def _fault(location: Location, kind: str, message: str) -> Fault:
    """A fault from one of Pydantic's errors."""
    message = _MESSAGES.get(kind, message).removeprefix("Value error, ")
    return Fault.at(tuple(step for step in location if step not in _TAGS), message[:1].lower() + message[1:])
