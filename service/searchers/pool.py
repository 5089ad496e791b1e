"""The search processes of a server: started, told what is written, asked, and started again when they end.

Whatever they do not answer the server answers itself: a process that ends, or that has not loaded a collection yet,
costs speed and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import Context
from itertools import count

from service.followers import Followers
from service.searchers.link import Link
from service.searchers.messages import Changed, Drop, Load, ToProcess, pack
from service.settings import Settings
from service.store.interface import Change, CollectionRecord, Store

log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 60.0
_LASTING_SECONDS = 60.0  # a process that ran for as long did not end because of how it began


class SearchProcesses(Followers):
    """The search processes of a server; see `service.followers.Followers` for what they are told.

    Parameters
    ----------
    settings:
        How many, and what each gets.
    store:
        Which they read.
    """

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._links: list[Link] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._records: dict[int, CollectionRecord] = {}
        self._tickets = count(1)
        self._early = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Start them, on the event loop, as soon as there is a collection to search."""
        if not self._settings.search_processes:
            return
        with self._early:
            self._loop = asyncio.get_running_loop()
            self._begin()

    def close(self) -> None:
        """End them. What they were asked is left unanswered."""
        self._closed = True
        for keeper in self._keepers:
            keeper.cancel()
        for link in self._links:
            link.close()
        for link in self._links:
            link.wait()
        self._links.clear()

    # -- what is asked ---------------------------------------------------------------------------------------------

    def with_room(self) -> Sequence[Link]:
        """Those that can be asked more, those first that have least to answer."""
        return sorted((link for link in self._links if link.room), key=lambda link: -link.room)

    @property
    def idle(self) -> bool:
        """Whether one of them waits for something to do."""
        return any(link.room and not link.busy for link in self._links)

    @property
    def warm(self) -> bool:
        """Whether one of them is at work, or was a moment ago."""
        return any(link.warm for link in self._links)

    @property
    def asked(self) -> int:
        """How many searches they have to answer."""
        return sum(link.searches for link in self._links)

    def busy_with(self, number: int) -> bool:
        """Whether one that has a collection is at work, and will be able to take more soon."""
        return any(link.busy and link.has(number) and link.in_time for link in self._links)

    # -- what is written -------------------------------------------------------------------------------------------

    def replaced(self, record: CollectionRecord) -> None:
        """All codes of a collection are others: they load it."""

        def tell() -> None:
            self._records[record.number] = record
            self._begin()
            for link in self._links:
                link.load(Load(next(self._tickets), record))

        self._on_loop(tell)

    def changed(self, record: CollectionRecord, change: Change, records: bytes | None) -> None:
        """A collection was written to: they do the same."""
        self._tell(Changed(record.number, change, records))

    def dropped(self, record: CollectionRecord) -> None:
        """A collection was deleted: they let go of it."""

        def forget() -> None:
            self._records.pop(record.number, None)
            for link in self._links:
                link.drop(record.number)

        self._on_loop(forget)
        self._tell(Drop(record.number))

    def _tell(self, message: ToProcess) -> None:
        if not self._settings.search_processes:
            return
        data = pack(message)

        def tell() -> None:
            for link in self._links:
                link.send(data)

        self._on_loop(tell)

    def _on_loop(self, work: Callable[[], object]) -> None:
        """Do some work on the event loop, after what was to be done before; at once while there is none."""
        with self._early:
            loop = self._loop
            if loop is None:
                work()
                return
        if not self._closed:
            loop.call_soon_threadsafe(work)

    # -- processes -------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start them, if that can be done and was not."""
        if self._loop is not None and self._records and not self._keepers and not self._closed:
            # In contexts of their own, not of the request that has made the first collection.
            keepers = [self._keep() for _ in range(self._settings.search_processes)]
            self._keepers = [self._loop.create_task(keeper, context=Context()) for keeper in keepers]

    async def _keep(self) -> None:
        """Keep one process running."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            began = time.monotonic()
            try:
                status = await self._run()
                log.warning("a search process ended with exit status %d", status)
            except Exception as error:  # as where there may be no more processes, or files
                log.warning("a search process could not be started: %s", error)
            if time.monotonic() - began > _LASTING_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            log.info("another search process is started in %g seconds", pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _run(self) -> int:
        """Run one process; its exit status."""
        link = Link(self._store.lend)
        await link.open(self._settings)
        self._links.append(link)
        for record in self._records.values():
            link.load(Load(next(self._tickets), record))
        status = await link.ended()
        self._links.remove(link)
        return status
