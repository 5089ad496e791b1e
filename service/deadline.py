"""Until when a request has to be answered. Work that nobody waits for any more is not begun."""

from __future__ import annotations

import math
import time
from contextvars import ContextVar

from service.errors import RequestTimeoutError

_expires: ContextVar[float] = ContextVar("expires", default=math.inf)


def begin(seconds: float) -> None:
    """From now on, this context is that of a request that has so long."""
    _expires.set(time.monotonic() + seconds)


def expires() -> float:
    """When the request of this context is over, by `time.monotonic`."""
    return _expires.get()


def check(when: float | None = None) -> None:
    """Raise RequestTimeoutError if a request is over, by default that of this context."""
    if time.monotonic() > (expires() if when is None else when):
        raise RequestTimeoutError("the request had waited for too long, and was not begun")
