"""A service in this process as the transport of a client: no socket, and the app's lifespan is run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import httpx

from ccq_client.errors import TransportError

Message = MutableMapping[str, Any]
AsgiApp = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class AsyncAppTransport(httpx.AsyncBaseTransport):
    """Requests go to an ASGI app, which starts at the first one, on the event loop of that, and ends in `aclose`."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._asgi = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._to_app: asyncio.Queue[str] | None = None
        self._started: asyncio.Future[None] | None = None
        self._life: asyncio.Task[None] | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The app's response."""
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            self._to_app = asyncio.Queue()
            self._to_app.put_nowait("lifespan.startup")
            self._life = asyncio.create_task(self._live(self._to_app, self._started))
        await asyncio.shield(self._started)
        return await self._asgi.handle_async_request(request)

    async def aclose(self) -> None:
        """End the app."""
        if self._to_app is not None and self._life is not None:
            self._to_app.put_nowait("lifespan.shutdown")
            await self._life
            self._to_app = self._life = None

    async def _live(self, to_app: asyncio.Queue[str], started: asyncio.Future[None]) -> None:
        async def receive() -> Message:
            return {"type": await to_app.get()}

        async def send(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                started.set_result(None)

        try:
            await self._app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)
        if not started.done():
            started.set_exception(TransportError("the app did not start", passing=False))


class AppTransport(httpx.BaseTransport):
    """The same for clients without coroutines: the app has an event loop in a thread of its own."""

    def __init__(self, app: AsgiApp) -> None:
        self._inner = AsyncAppTransport(app)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The app's response."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # A client that nobody closes does not keep the process from ending.
                self._thread = threading.Thread(target=self._loop.run_forever, name="ccq-app", daemon=True)
                self._thread.start()
        request.read()  # a body that comes in parts: the app takes those of coroutines alone
        return asyncio.run_coroutine_threadsafe(self._respond(request), self._loop).result()

    def close(self) -> None:
        """End the app, and its thread."""
        if self._loop is None or self._thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._inner.aclose(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    async def _respond(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise TypeError("expected the stream of an ASGI response")
        content = b"".join([chunk async for chunk in response.stream])
        return httpx.Response(response.status_code, headers=response.headers, stream=httpx.ByteStream(content))
