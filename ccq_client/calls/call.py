"""What a request is, before anything sends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import orjson

from ccq_client.errors import InputError, TransportError

T = TypeVar("T")
JSON = "application/json"
_SCHEME = re.compile(r"(\w[\w+.-]*):/")
_ROOT = re.compile(r"https?://[^/]", re.IGNORECASE)


class Call(NamedTuple, Generic[T]):
    """One request.

    Attributes
    ----------
    method, path:
        As in HTTP; the path is percent-encoded.
    parse:
        Makes the result of the JSON of a successful reply, None where it has no body. TypeError, KeyError, ValueError
        or AttributeError: that is no reply of the service.
    body:
        JSON, or the bytes of a file, or the path of one that is read while it is sent.
    headers:
        Those of this request alone.
    repeatable:
        Whether to send it twice does what sending it once does.
    """

    method: str
    path: str
    parse: Callable[[Any], T]
    body: bytes | Path | None = None
    content_type: str = JSON
    headers: Mapping[str, str] = MappingProxyType({})
    repeatable: bool = True

    @property
    def keyed(self) -> bool:
        """Whether it has an idempotency key: then it is done once however often it is sent."""
        return any(name.lower() == "idempotency-key" for name in self.headers)


def address(given: str) -> str:
    """The address of a service with its scheme: of ``host:port`` alone, ``http://`` is meant.

    Raises
    ------
    TransportError
        It is none of HTTP.
    """
    url = given.strip().removeprefix("//")
    if _SCHEME.match(url) is None:
        url = f"http://{url}"
    if not _ROOT.match(url):
        message = f"url: expected the address of a service, as in http://127.0.0.1:8000, got {given!r}"
        raise TransportError(message, given, passing=False)
    return url


def named(name: str) -> str:
    """The name of a collection, model, alias, snapshot or job as one part of a path; InputError if none can be it."""
    if isinstance(name, str) and "/" in name:
        raise InputError(f"expected a name of letters, digits, '.', '_' and '-', got {name!r}")
    return segment(name)


def segment(name: str) -> str:
    """A name, or an id, as one part of a path; it may hold any character.

    Raises
    ------
    InputError
        It is empty, or no Unicode.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"expected a name, got {name!r}")
    try:
        # A client that normalizes paths would take "." and ".." away.
        return quote(name, safe="").replace(".", "%2E") if name.strip(".") == "" else quote(name, safe="")
    except UnicodeEncodeError:
        raise InputError(f"expected a name that is valid Unicode, got {name!r}") from None


def to_json(value: Any, what: str = "the request") -> bytes:
    """A value as JSON; NumPy numbers and arrays too.

    Raises
    ------
    InputError
        JSON has no such value.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except (orjson.JSONEncodeError, TypeError) as error:
        raise InputError(f"{what} cannot be written as JSON: {error}") from None


def nothing(_: Any) -> None:
    """The result of a reply that says nothing."""
