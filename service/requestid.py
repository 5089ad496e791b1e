"""The id of a request: it is in the response's header, in problems and in the log."""

from __future__ import annotations

import re
from contextvars import ContextVar
from random import Random

from starlette.types import Scope

from service.headers import header

HEADER = "X-Request-Id"
current: ContextVar[str | None] = ContextVar("request_id", default=None)
"""What log lines name: the id of the request that is being handled, or those of several that are answered together."""

_KEY = "ccq.request_id"
_NAME = HEADER.lower().encode()
_RANDOM = Random()  # noqa: S311 (ids are no secrets, and the system's randomness costs ten times as much)
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")


def assign(scope: Scope) -> str:
    """Give a request its id: the client's own if it sent a sane one, else a new one."""
    given = header(scope, _NAME)
    scope[_KEY] = given if given and _SANE.fullmatch(given) else f"{_RANDOM.getrandbits(128):032x}"
    current.set(request_id(scope))
    return request_id(scope)


def request_id(scope: Scope) -> str:
    """The request's id."""
    return str(scope[_KEY])
