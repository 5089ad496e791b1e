"""How much the server takes on at one time: requests, writes among them, and memory for their bodies.

Requests that wait cost little each, but without a bound the last would wait for longer than anyone listens, and their
bodies would fill the memory. All counting is done on the event loop.
"""

from __future__ import annotations

from starlette.types import Scope

from service.errors import MemoryLimitError, OverloadedError
from service.settings import Settings

_KEY = "ccq.share"


class Admission:
    """What all requests in progress take together."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._requests = 0
        self._writes = 0
        self._memory = 0

    def share(self, scope: Scope) -> Share:
        """The share of a request, nothing so far. To be given back at its end."""
        share = scope[_KEY] = Share(self)
        return share

    def add(self, requests: int, writes: int) -> None:
        """Admit a request; OverloadedError if there are too many."""
        for what, now, most in (
            ("requests", self._requests + requests, self._settings.max_waiting),
            ("writes", self._writes + writes, self._settings.max_waiting_writes),
        ):
            if now > most:
                raise OverloadedError(f"expected at most {most} {what} at one time, got one more")
        self._requests += requests
        self._writes += writes

    def add_memory(self, size: int) -> None:
        """Set memory aside; MemoryLimitError if there is too little."""
        most = self._settings.max_memory_bytes
        if most is not None and self._memory + size > most:
            raise MemoryLimitError(
                f"expected bodies that take at most {most} bytes of memory at one time, got one of {size} more beside "
                f"{self._memory}"
            )
        self._memory += size

    def remove(self, requests: int, writes: int, memory: int) -> None:
        """Take back what was admitted and set aside."""
        self._requests -= requests
        self._writes -= writes
        self._memory -= memory


class Share:
    """What one request takes."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._requests = 0
        self._writes = 0
        self._memory = 0

    def enter(self, *, write: bool) -> None:
        """Be admitted; OverloadedError if too many are in progress."""
        self._admission.add(1, int(write))
        self._requests, self._writes = 1, int(write)

    def reserve(self, size: int) -> None:
        """Have memory set aside; MemoryLimitError if there is too little."""
        self._admission.add_memory(size)
        self._memory += size

    def give_back(self) -> None:
        """The request has ended."""
        self._admission.remove(self._requests, self._writes, self._memory)


def share_of(scope: Scope) -> Share:
    """The share of a request."""
    share: Share = scope[_KEY]
    return share
