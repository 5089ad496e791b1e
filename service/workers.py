"""Threads for work that would block the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from service import deadline

T = TypeVar("T")


class Workers:
    """Threads for one kind of work, so that one kind never waits for another.

    Parameters
    ----------
    threads:
        How many run at one time; further work waits its turn.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._limiter = anyio.CapacityLimiter(threads)

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """The result of `work(*args)`, done in a thread; RequestTimeoutError if its turn comes too late."""

        def begin() -> T:
            deadline.check()
            return work(*args)

        return await anyio.to_thread.run_sync(begin, limiter=self._limiter)
