"""Searches that come at the same time are answered together, in one pass over the codes for many of them.

Where the codes are few enough, those that came with one look at the network are answered on the event loop itself: to
hand a search over to a thread, and its answer back, costs more than to answer it. The others wait for threads, and what
finds all of them busy is answered together too. Nothing is delayed in the hope of company, but for those that have
arrived already and are still on their way to here.

Where there are search processes, they get most: once one is at work, all that comes, while the server is left to read
requests and to send replies.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context

from service import metrics, requestid
from service.collection import Collection
from service.errors import WouldTakeLongError
from service.searchers.link import Link
from service.searchers.messages import MOST_IN_PASS, Reply
from service.searchers.pool import SearchProcesses
from service.searching import Caches, search_together
from service.settings import Settings
from service.waiting import Found, Waiting
from service.workers import Workers

MOST_TOGETHER = 64
_LONG_SECONDS = 0.1  # where a pass on the event loop takes as long, as on a cold disk, there is none for a while
_WHILE_SECONDS = 1.0
# Where there are search processes. So many searches wake them up, while fewer are answered sooner here. Once one is at
# work few are enough, until there are no more than few.
_MANY = 12
_FEW = 4
_FORGOTTEN = 0.98  # of how many searches there were at one time, at each look
# Turns of the event loop, some microseconds each, that a search takes from the network to here. Those of several
# clients are rarely at the same place.
_TURNS = 3


class Gathering:
    """Answers searches.

    Parameters
    ----------
    workers:
        Where they run, besides other work.
    processes:
        Where quick ones run, if there are any.
    """

    def __init__(self, workers: Workers, settings: Settings, processes: SearchProcesses) -> None:
        self._workers = workers
        self._processes = processes
        self._settings = settings
        self._caches = Caches.of(settings)
        self._queue: deque[Waiting] = deque()
        self._busy = 0
        self._looking = False
        self._most_of_late = 0.0
        self._threads_until = -math.inf
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """End what goes on between searches."""
        self._caches.warming.close()

    async def search(self, collection: Collection, body: bytes) -> Found:
        """The reply to a `SearchRequest`; raises what `search_together` yields or raises."""
        waiting = Waiting(collection, body)
        self._queue.append(waiting)
        self._look_soon()
        return await waiting.reply

    def _look_soon(self) -> None:
        """See to the queue, once everything that has come already is in it."""
        if not self._looking:
            self._looking = True
            # A context of its own: this goes on when the request is over in which it happens to begin.
            self._wait_a_turn(0, _TURNS, Context())

    def _wait_a_turn(self, before: int, turns: int, context: Context) -> None:
        """Look once some turns of the event loop in a row have brought no further search, or enough have come."""
        waiting = len(self._queue)
        if before < waiting < (self._enough if self._processes.idle else MOST_TOGETHER):
            turns = _TURNS
        loop = asyncio.get_running_loop()
        if turns:
            loop.call_soon(self._wait_a_turn, waiting, turns - 1, context, context=context)
        else:
            self._look()

    def _look(self) -> None:
        self._looking = False
        self._hand_out()
        together = self._take_here()
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

    def _needs_thread(self, waiting: Waiting) -> bool:
        most = self._settings.max_rows_at_once
        if not most or waiting.threads or not waiting.quick or time.monotonic() < self._threads_until:
            return True
        return waiting.collection.view.rows > most

    @property
    def _enough(self) -> int:
        """How many searches are handed over rather than answered here."""
        return _FEW if self._processes.warm else _MANY

    def _hand_out(self) -> None:
        """Hand quick searches over to processes, those first that have least to do."""
        links = self._processes.with_room()
        waiting = sum(not self._needs_thread(waiting) for waiting in self._queue) if links else 0
        self._most_of_late = max(waiting + self._processes.asked, _FORGOTTEN * self._most_of_late)
        enough = self._enough
        for i, link in enumerate(links):
            share = max(-(-waiting // (len(links) - i)), _FEW)
            while waiting >= enough and share > 0 and link.room:
                together = self._take_quick(min(share, link.room, self._most_in_pass), link)
                if not together:
                    break
                self._ask(link, together)
                waiting -= len(together)
                share -= len(together)
            enough = _FEW

    @property
    def _most_in_pass(self) -> int:
        """How many searches a process answers together: half of its share of those that there are at one time.

        While it works on the other half, the server sends the replies to these, and reads what their clients ask next.
        """
        half = int(self._most_of_late) // (2 * max(self._settings.search_processes, 1))
        return min(max(half, _FEW), MOST_IN_PASS)

    def _take_here(self) -> list[Waiting]:
        """Quick searches that are answered here and now: none while they are few, and processes at work on others.

        Those are taken with the next ones, or when a process has answered, whichever is first.
        """
        if self._processes.asked:
            busy = self._processes.busy_with
            quick = [waiting.collection.record.number for waiting in self._queue if not self._needs_thread(waiting)]
            if len(quick) < _MANY and all(map(busy, quick)):
                return []
        return self._take_quick()

    def _ask(self, link: Link, together: list[Waiting]) -> None:
        def done(replies: Sequence[Reply | None]) -> None:
            for waiting, reply in zip(together, replies, strict=True):
                if reply is not None:
                    waiting.answer(Found.by_process(reply))
            self._leave_to_threads(together)
            self._look_soon()

        number, bodies = together[0].collection.record.number, [waiting.body for waiting in together]
        if link.ask(number, bodies, _request_ids(together), self._most_in_pass, done):
            metrics.gathered(len(together))
        else:
            self._leave_to_threads(together)

    def _leave_to_threads(self, together: list[Waiting]) -> None:
        """Queue those that have no answer yet once more, behind those that wait for threads already."""
        for waiting in together:
            if not waiting.reply.done():
                waiting.threads = True
                self._queue.append(waiting)

    def _take_quick(self, most: int = MOST_TOGETHER, link: Link | None = None) -> list[Waiting]:
        """Searches of one collection that can be answered here and now, or by a process; so many at most."""
        taken: list[Waiting] = []
        others: deque[Waiting] = deque()
        for waiting in self._queue:
            company = not taken or waiting.collection is taken[0].collection
            there = link is None or link.has(waiting.collection.record.number)
            if len(taken) < most and company and there and not self._needs_thread(waiting):
                taken.append(waiting)
                if link is None:
                    rows = max(waiting.collection.view.rows, 1)
                    most = min(most, self._settings.max_rows_at_once // rows)
            else:
                others.append(waiting)
        self._queue = others
        return [waiting for waiting in taken if waiting.wanted()]

    def _answer_at_once(self, together: list[Waiting]) -> None:
        metrics.gathered(len(together))
        requestid.current.set(_request_ids(together))
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
        self._leave_to_threads(together)

    async def _work(self) -> None:
        try:
            while together := self._take():
                await self._answer(together)
        finally:
            self._busy -= 1
            if self._queue:
                self._look_soon()

    async def _answer(self, together: list[Waiting]) -> None:
        loop = asyncio.get_running_loop()

        def hand_over(i: int, reply: Found | Exception) -> None:
            loop.call_soon_threadsafe(together[i].answer, reply)

        metrics.gathered(len(together))
        requestid.current.set(_request_ids(together))
        bodies = [waiting.body for waiting in together]
        try:
            await self._workers.run(_search, together[0].collection, bodies, self._settings, self._caches, hand_over)
        except Exception as error:
            for waiting in together:
                waiting.answer(error)
        finally:
            for waiting in together:  # all have their answer, or the server is being stopped
                waiting.reply.cancel()

    def _take(self) -> list[Waiting]:
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


def _request_ids(together: Iterable[Waiting]) -> str:
    return " ".join(waiting.request_id for waiting in together if waiting.request_id)


def _search(
    collection: Collection,
    bodies: list[bytes],
    settings: Settings,
    caches: Caches,
    hand_over: Callable[[int, Found | Exception], None],
) -> None:
    for i, answer in search_together(collection, bodies, settings, caches):
        hand_over(i, answer if isinstance(answer, Exception) else Found.of(answer))
