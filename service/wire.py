"""The HTTP protocol of the server, which writes what belongs together in one piece.

Uvicorn writes a response as two: its head, then its body. With short bodies the second system call costs as much as
some searches.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LONG = 1 << 16  # bytes


class Protocol(HttpToolsProtocol):
    """Uvicorn's, on a transport that joins writes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(_Joining(transport, self.loop))  # type: ignore[arg-type]


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
