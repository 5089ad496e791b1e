"""A server that gives the same reply to every request: what the client can do at most.

`python -m benchmarks.peers.constant PORT`
"""

from __future__ import annotations

import asyncio
import sys

import httptools
import uvloop

# As long as a reply of ten ids and distances.
_BODY = b'{"ids":[' + b",".join([b"123456"] * 10) + b'],"distances":[' + b",".join([b"0.1234567"] * 10) + b"]}"
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)


class _Constant(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(_REPLY)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Constant, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
