"""The HTTP protocol of the server, which writes what belongs together in one piece, and waits for no request for ever.

Uvicorn writes a response as two: its head, then its body. With short bodies the second system call costs as much as
some searches. And it keeps a connection on which nothing comes, or half a head, until the client ends it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LONG = 1 << 16  # bytes


class Protocol(HttpToolsProtocol):
    """Uvicorn's, on a transport that joins writes.

    Parameters
    ----------
    head_seconds:
        How long the head of a request may take to arrive, on a new connection or from its first byte on. Then the
        connection is closed.
    """

    def __init__(self, *args: Any, head_seconds: float, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self._head_seconds = head_seconds
        self._head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(_Joining(transport, self.loop))  # type: ignore[arg-type]
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """A part of a request has come, or of several."""
        super().data_received(data)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _await_head(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._head_due is None:
            self._head_due = self.loop.call_later(self._head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None


class _Joining:
    """A transport. What is written to it within one step of the event loop is written to the network at its end."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Write soon; what is long at once, so that whoever writes much is told to wait."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        if len(data) > _LONG:
            self._flush()

    def close(self) -> None:
        """Close the connection once all is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, []
        if held:
            self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
