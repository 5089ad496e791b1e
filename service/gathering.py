"""Searches that come at the same time are answered together, in one pass over the codes for many of them.

Where the codes are few enough, those that came with one look at the network are answered on the event loop itself: to
hand a search over to a thread, and its answer back, costs more than to answer it. The others wait for threads, and what
finds all of them busy is answered together too. Nothing is ever delayed in the hope of company.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field
from functools import cached_property

from service import deadline, metrics, requestid
from service.collection import Collection
from service.errors import RequestTimeoutError, WouldTakeLongError
from service.responses import Json
from service.searching import Answer, Caches, search_together
from service.settings import Settings
from service.workers import Workers

MOST_TOGETHER = 64
_LONG_SECONDS = 0.1  # where a pass on the event loop takes as long, as on a cold disk, there is none for a while
_WHILE_SECONDS = 1.0
# Long bodies, filters, batches, groups, pages behind a cursor, and a `limit` or `offset` of 100 and more may take far
# longer than other searches, which should not wait for them, and their replies may be long.
_MOST_BYTES = 1 << 18
_ALONE = re.compile(rb'"(?:queries|group_by|cursor)"|"(?:limit|offset)"\s*:\s*\d{3}')


@dataclass(frozen=True)
class Found:
    """The reply to a search, and what it was that was asked for; see `service.searching.Answer`."""

    reply: Json
    limit: int
    queries: int

    @classmethod
    def of(cls, answer: Answer) -> Found:
        return cls(Json(answer.reply), answer.limit, answer.queries)


@dataclass(eq=False)
class _Waiting:
    collection: Collection
    body: bytes
    reply: asyncio.Future[Found] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    request_id: str | None = field(default_factory=requestid.current.get)
    expires: float = field(default_factory=deadline.expires)

    threads: bool = False  # whether it was found to need one

    def goes_with(self, other: _Waiting) -> bool:
        return self.collection is other.collection and self.quick and other.quick and not self.filtered | other.filtered

    def answer(self, reply: Found | Exception) -> None:
        if self.reply.done():  # nobody waits for it any more, or it has been answered
            return
        if isinstance(reply, Exception):
            self.reply.set_exception(reply)
        else:
            self.reply.set_result(reply)

    def wanted(self) -> bool:
        """Whether anybody still waits for it. If it came too late, that is its answer."""
        try:
            deadline.check(self.expires)
        except RequestTimeoutError as error:
            self.answer(error)
        return not self.reply.done()

    @cached_property
    def quick(self) -> bool:
        return len(self.body) <= _MOST_BYTES and not _ALONE.search(self.body)

    @cached_property
    def filtered(self) -> bool:
        return b'"filter"' in self.body


class Gathering:
    """Answers searches.

    Parameters
    ----------
    workers:
        Where they run, besides other work.
    """

    def __init__(self, workers: Workers, settings: Settings) -> None:
        self._workers = workers
        self._settings = settings
        self._caches = Caches.of(settings)
        self._queue: deque[_Waiting] = deque()
        self._busy = 0
        self._looking = False
        self._threads_until = -math.inf
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """End what goes on between searches."""
        self._caches.warming.close()

    async def search(self, collection: Collection, body: bytes) -> Found:
        """The reply to a `SearchRequest`; raises what `search_together` yields or raises."""
        waiting = _Waiting(collection, body)
        self._queue.append(waiting)
        self._look_soon()
        return await waiting.reply

    def _look_soon(self) -> None:
        """See to the queue, once everything that has come already is in it."""
        if not self._looking:
            self._looking = True
            # A context of its own: this goes on when the request is over in which it happens to begin.
            asyncio.get_running_loop().call_soon(self._look, context=Context())

    def _look(self) -> None:
        self._looking = False
        together = self._take_quick()
        if together:
            self._answer_at_once(together)
            if self._queue:
                self._look_soon()  # after a look at the network
        left = sum(map(self._needs_thread, self._queue))
        for _ in range(min(left, self._workers.threads - self._busy)):
            self._busy += 1
            task = asyncio.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _needs_thread(self, waiting: _Waiting) -> bool:
        most = self._settings.max_rows_at_once
        if not most or waiting.threads or not waiting.quick or time.monotonic() < self._threads_until:
            return True
        return waiting.collection.view.rows > most

    def _take_quick(self) -> list[_Waiting]:
        """Searches of one collection that can be answered here and now."""
        taken: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        most = MOST_TOGETHER
        for waiting in self._queue:
            company = not taken or waiting.collection is taken[0].collection
            if len(taken) < most and company and not self._needs_thread(waiting):
                taken.append(waiting)
                rows = max(waiting.collection.view.rows, 1)
                most = min(MOST_TOGETHER, self._settings.max_rows_at_once // rows)
            else:
                others.append(waiting)
        self._queue = others
        return [waiting for waiting in taken if waiting.wanted()]

    def _answer_at_once(self, together: list[_Waiting]) -> None:
        metrics.gathered(len(together))
        requestid.current.set(" ".join(waiting.request_id for waiting in together if waiting.request_id))
        started = time.monotonic()
        bodies = [waiting.body for waiting in together]
        try:
            for i, answer in search_together(together[0].collection, bodies, self._settings, self._caches, quick=True):
                if not isinstance(answer, WouldTakeLongError):
                    together[i].answer(answer if isinstance(answer, Exception) else Found.of(answer))
        except WouldTakeLongError:
            pass
        except Exception as error:
            for waiting in together:
                waiting.answer(error)
        ended = time.monotonic()
        if ended - started > _LONG_SECONDS:
            self._threads_until = ended + _WHILE_SECONDS
        for waiting in together:
            if not waiting.reply.done():
                waiting.threads = True
                self._queue.append(waiting)

    async def _work(self) -> None:
        try:
            while together := self._take():
                await self._answer(together)
        finally:
            self._busy -= 1
            if self._queue:
                self._look_soon()

    async def _answer(self, together: list[_Waiting]) -> None:
        loop = asyncio.get_running_loop()

        def hand_over(i: int, reply: Found | Exception) -> None:
            loop.call_soon_threadsafe(together[i].answer, reply)

        metrics.gathered(len(together))
        requestid.current.set(" ".join(waiting.request_id for waiting in together if waiting.request_id))
        bodies = [waiting.body for waiting in together]
        try:
            await self._workers.run(_search, together[0].collection, bodies, self._settings, self._caches, hand_over)
        except Exception as error:
            for waiting in together:
                waiting.answer(error)
        finally:
            for waiting in together:  # all have their answer, or the server is being stopped
                waiting.reply.cancel()

    def _take(self) -> list[_Waiting]:
        """The search that has waited longest for a thread, and its share of those that can go with it; or none."""
        while self._queue and not self._queue[0].wanted():  # all have the same time: those that are late stand in front
            self._queue.popleft()
        waiting = [waiting for waiting in self._queue if self._needs_thread(waiting)]
        if not waiting:
            return []
        company = [other for other in waiting[1:] if other.goes_with(waiting[0])]
        share = min(MOST_TOGETHER, -(-(len(company) + 1) // self._workers.threads))
        taken = [waiting[0], *company[: share - 1]]
        for one in taken:
            self._queue.remove(one)
        return taken


def _search(
    collection: Collection,
    bodies: list[bytes],
    settings: Settings,
    caches: Caches,
    hand_over: Callable[[int, Found | Exception], None],
) -> None:
    for i, answer in search_together(collection, bodies, settings, caches):
        hand_over(i, answer if isinstance(answer, Exception) else Found.of(answer))
