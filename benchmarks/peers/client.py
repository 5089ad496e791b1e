"""The client of all contestants: keep-alive connections over plain sockets, requests made beforehand.

It does as little as can be done for a request, so that what is measured is the server; `constant` says how little.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httptools
import numpy as np
import orjson
import uvloop

_SUCCESS = range(200, 300)


class RequestFailedError(RuntimeError):
    """A server answered with something else than success, or closed the connection."""


@dataclass(frozen=True)
class Load:
    """What a server did under load.

    Attributes
    ----------
    rate:
        Replies a second.
    p50, p99:
        Milliseconds from sending a request to the end of its reply.
    """

    rate: float
    p50: float
    p99: float


def request(method: str, path: str, body: Any = None) -> bytes:
    """The bytes of a request; `body` is the body itself, or what is to be sent as JSON."""
    content = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
    kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def ask(port: int, requests: Iterable[bytes], connections: int = 1) -> list[bytes]:
    """The bodies of the replies, in the order of the requests, which are made while others are under way.

    Raises
    ------
    RequestFailedError
        One was no success.
    """
    replies: dict[int, bytes] = {}
    numbered = enumerate(requests)

    def keep(number: int, reply: bytes, _seconds: float) -> None:
        replies[number] = reply

    uvloop.run(_exchange(port, numbered, connections, keep))
    return [replies[number] for number in range(len(replies))]


def load(port: int, requests: Sequence[bytes], connections: int, seconds: float) -> Load:
    """Send requests over and over for so long, each connection one after the other, after a tenth of that to warm up.

    Time counts from when all connections are open, which can take some servers a second. Replies to what was sent in
    time count, and so does the time that they took.

    Raises
    ------
    RequestFailedError
        One was no success.
    """
    taken: list[float] = []
    began = end = last = 0.0
    again: Iterator[tuple[int, bytes]] = enumerate(itertools.cycle(requests))
    in_time = itertools.takewhile(lambda _: time.perf_counter() < end, again)

    def begin() -> None:
        nonlocal began, end, last
        began = time.perf_counter() + seconds / 10
        end = last = began + seconds

    def note(_number: int, _reply: bytes, spent: float) -> None:
        nonlocal last
        now = time.perf_counter()
        if now > began:
            taken.append(spent)
            last = max(last, now)

    uvloop.run(_exchange(port, in_time, connections, note, begin))
    p50, p99 = np.percentile(taken, [50, 99]) * 1e3
    return Load(len(taken) / (last - began), float(p50), float(p99))


async def _exchange(
    port: int,
    requests: Iterator[tuple[int, bytes]],
    connections: int,
    got: Callable[[int, bytes, float], None],
    begin: Callable[[], None] = lambda: None,
) -> None:
    """Exchange requests for replies. `begin` is called once all connections are open."""
    loop = asyncio.get_running_loop()
    opening = (loop.create_connection(_Connection, "127.0.0.1", port) for _ in range(connections))
    opened = await asyncio.gather(*opening)

    async def work(connection: _Connection) -> None:
        for number, content in requests:
            start = time.perf_counter()
            reply = await connection.send(content)
            got(number, reply, time.perf_counter() - start)

    begin()
    try:
        await asyncio.gather(*(work(connection) for _, connection in opened))
    finally:
        for transport, _ in opened:
            transport.close()


class _Connection(asyncio.Protocol):
    """One connection, with at most one request under way."""

    _transport: asyncio.WriteTransport
    _reply: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def send(self, content: bytes) -> asyncio.Future[bytes]:
        self._reply = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._transport.write(content)
        return self._reply

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._reply is None or self._reply.done():  # nobody waits any more
            return
        body, status = b"".join(self._parts), self._parser.get_status_code()
        if status in _SUCCESS:
            self._reply.set_result(body)
        else:
            self._reply.set_exception(RequestFailedError(f"status {status}: {body[:500].decode(errors='replace')}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reply is not None and not self._reply.done():
            reason = f"the server closed the connection: {exc or 'no reason given'}"
            self._reply.set_exception(RequestFailedError(reason))
