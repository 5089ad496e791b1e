"""One search process, as the server sees it."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import cast

from service import metrics
from service.errors import WouldTakeLongError
from service.searchers.messages import MOST_IN_PASS, Answers, Ask, Load, Loaded, Ping, Reply, Unpacker, pack
from service.settings import Settings

log = logging.getLogger(__name__)

_PING = pack(Ping())

Done = Callable[[Sequence[Reply | None]], None]

MOST_ASKED = 4 * MOST_IN_PASS  # searches at one time: those that are answered, and some that lie ready
# A process is to say something so often. One that has been silent for a while may be stopped, or the machine is busy:
# the server answers what it was asked, as it does what takes long. One that stays silent is ended: it may keep the log
# from being emptied.
_BEAT_SECONDS = 0.2
_SILENT_SECONDS = 1.0
_DEAD_SECONDS = 5.0
_START_SECONDS = 60.0
_LATE_SECONDS = 2.0
_SLOW_SECONDS = 30.0  # it listens, but does not answer
_RETRY_SECONDS = 10.0
_WARM_SECONDS = 0.01
_MOST_UNSENT_BYTES = 64 << 20
# What else has a name like this may be a secret.
_SETTINGS = ("CCQ_SIMD_LEVEL",)


@dataclass
class _Asked:
    """A batch. `taken_back`: the server has answered it meanwhile."""

    searches: int
    done: Done
    give_back: Callable[[], None]
    since: float
    taken_back: bool = False

    def answer(self, replies: Sequence[Reply | None]) -> None:
        if not self.taken_back:
            self.taken_back = True
            self.done(replies)


class Link(asyncio.Protocol):
    """A search process and the socket to it. All on the event loop.

    Parameters
    ----------
    lend:
        Admits a read that is done elsewhere, see `service.store.interface.Store`.
    """

    def __init__(self, lend: Callable[[], Callable[[], None]]) -> None:
        self._lend = lend
        self._loop = asyncio.get_running_loop()
        self._unpacker = Unpacker()
        self._batches = count(1)
        self._asked: dict[int, _Asked] = {}
        self._orders: dict[int, Load] = {}  # the last of each collection
        self._loaded: set[int] = set()
        self._transport: asyncio.Transport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lost = self._loop.create_future()
        self._ending = False
        self._heard: float | None = None  # when it said something last
        self._answered_last = -math.inf
        self._began = self._beat_before = self._loop.time()
        self._beat_timer: asyncio.TimerHandle | None = None

    async def open(self, settings: Settings) -> None:
        """Start the process."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _start(theirs)
            ours.setblocking(False)
            await self._loop.create_connection(lambda: self, sock=ours)
        except BaseException:
            ours.close()
            self.close()
            self.wait()
            raise
        self.send(pack(settings.model_copy(update={"jwt_secret": None})))
        self._beat()

    async def ended(self) -> int:
        """Wait until the process has ended; its exit status, negative if a signal ended it."""
        await self._lost
        self.close()  # if it has only closed its socket
        return await asyncio.to_thread(self.wait)

    def close(self) -> None:
        """End the process at once: it has nothing that is worth keeping."""
        self._ending = True
        if self._process is not None:
            self._process.kill()

    def wait(self) -> int:
        """Wait until a process that was ended has ended; its exit status."""
        return 0 if self._process is None else self._process.wait()

    # -- what it is told -------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send a packed message."""
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > _MOST_UNSENT_BYTES:
            self._end("does not take what it is told")

    def load(self, order: Load) -> None:
        """Let it load a collection."""
        self._loaded.discard(order.record.number)
        self._orders[order.record.number] = order
        self.send(pack(order))

    def drop(self, number: int) -> None:
        """Ask it for this collection no more."""
        self._loaded.discard(number)
        self._orders.pop(number, None)

    # -- what it is asked ------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more searches it can be asked: none while it does not answer in time, or has loaded nothing."""
        return max(MOST_ASKED - self.searches, 0) if self._loaded and self.in_time else 0

    @property
    def searches(self) -> int:
        """How many it has to answer."""
        return sum(asked.searches for asked in self._asked.values())

    @property
    def busy(self) -> bool:
        """Whether it has something to answer."""
        return bool(self._asked)

    @property
    def warm(self) -> bool:
        """Whether it has, or had a moment ago."""
        return self.busy or self._loop.time() - self._answered_last < _WARM_SECONDS

    def has(self, number: int) -> bool:
        """Whether it has a collection."""
        return number in self._loaded

    def ask(self, number: int, bodies: list[bytes], request_ids: str, most: int, done: Done) -> bool:
        """Ask for replies to searches of a collection, so many at one time as `most` says.

        `done` gets them, in their order, None for those that the server has to look at itself; of all if the process
        ends. Returns whether it was asked: not while the database is to be read by nobody.
        """
        try:
            give_back = self._lend()
        except WouldTakeLongError:
            return False
        batch = next(self._batches)
        self._asked[batch] = _Asked(len(bodies), done, give_back, self._loop.time())
        self.send(pack(Ask(batch, number, bodies, request_ids, most)))
        return True

    # -- whether it lives ------------------------------------------------------------------------------------------

    @property
    def in_time(self) -> bool:
        """Whether it listens, and nothing had to be taken back from it that it still works on."""
        return not self._silent and not any(asked.taken_back for asked in self._asked.values())

    @property
    def _silent(self) -> bool:
        return self._heard is None or self._loop.time() - self._heard > _SILENT_SECONDS

    def _beat(self) -> None:
        now = self._loop.time()
        if self._heard is not None and now - self._beat_before > _SILENT_SECONDS:  # it was the server that stood still
            self._heard = now
        self._beat_before = now
        if self._heard is None:
            self._end_after(_START_SECONDS, self._began, "does not begin")
        else:
            self._end_after(_DEAD_SECONDS, self._heard, "says nothing")
        for asked in list(self._asked.values()):
            if self._silent or now - asked.since > _LATE_SECONDS:
                asked.answer([None] * asked.searches)
            self._end_after(_SLOW_SECONDS, asked.since, "does not answer")
        if self._heard is None or now - self._heard > _BEAT_SECONDS / 2:
            self.send(_PING)
        self._beat_timer = self._loop.call_later(_BEAT_SECONDS, self._beat)

    def _end_after(self, seconds: float, since: float, why: str) -> None:
        if self._loop.time() - since > seconds:
            self._end(why)

    def _end(self, why: str) -> None:
        if not self._ending:
            log.warning("a search process %s, and is ended", why)
            self.close()

    # -- what it says ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has begun."""
        self._transport = cast(asyncio.Transport, transport)
        metrics.search_process_began()

    def data_received(self, data: bytes) -> None:
        """It says something."""
        self._heard = self._loop.time()
        for message in self._unpacker.feed(data):
            if isinstance(message, Answers):
                self._answered(message)
            elif isinstance(message, Loaded):
                self._told(message)

    def _answered(self, answers: Answers) -> None:
        self._answered_last = self._loop.time()
        asked = self._asked.pop(answers.batch)
        asked.give_back()
        metrics.count_scan(answers.rows, answers.scanned)
        asked.answer(answers.replies)

    def _told(self, message: Loaded) -> None:
        for order in self._orders.values():
            if order.ticket == message.ticket and message.loaded:
                self._loaded.add(order.record.number)
            elif order.ticket == message.ticket:
                self._loop.call_later(_RETRY_SECONDS, self._load_again, order)

    def _load_again(self, order: Load) -> None:
        if self._orders.get(order.record.number) is order:
            self.send(pack(order))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (its name in asyncio)
        """It has ended, or is to end."""
        metrics.search_process_ended()
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        self._loaded.clear()
        while self._asked:
            _, asked = self._asked.popitem()
            asked.give_back()
            asked.answer([None] * asked.searches)
        if not self._lost.done():
            self._lost.set_result(None)


def _start(theirs: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 (this program)
        [sys.executable, "-P", "-m", "service.searchers.process", str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=_environment(),
        pass_fds=[theirs.fileno()],
        start_new_session=True,  # a Ctrl-C is for the server, which ends it in order
    )


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CCQ_") or name in _SETTINGS}
    return {**kept, "CCQ_THREADS": "1"}  # there is one such process for each core that is to be used
