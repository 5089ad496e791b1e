"""Both clients behind one face, so that every test runs with each."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from ccq_client import AsyncClient, Client
from ccq_client.in_process import AppTransport, AsyncAppTransport
from ccq_client.limits import limits_of
from ccq_client.retrying import Clock
from service.app import create_app
from service.schemas.limits import limits
from service.settings import Settings

KINDS = ("threads", "asyncio")
DEFAULT_LIMITS = limits_of(limits(Settings(data=Path("unused")), {}, {}))
"""Those of a service without settings."""


class Blocking:
    """An `AsyncClient`, or what belongs to one, whose verbs return results and lists instead of awaitables."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self._inner, self._runner = inner, runner

    def __getattr__(self, name: str) -> Any:
        return self._blocking(getattr(self._inner, name))

    def _blocking(self, value: Any) -> Any:
        if inspect.iscoroutine(value):
            return self._runner.run(value)
        if inspect.isasyncgen(value):
            return self._runner.run(_collected(value))
        if inspect.ismethod(value):
            return lambda *args, **options: self._blocking(value(*args, **options))
        return Blocking(value, self._runner) if type(value).__name__.startswith("Async") else value


async def _collected(values: Any) -> list[Any]:
    return [value async for value in values]


@contextmanager
def connected(kind: str, transport: Any = None, **options: Any) -> Iterator[Any]:
    """A client of the kind; of a transport that both take, or of one by kind."""
    chosen = transport.get(kind) if isinstance(transport, dict) else transport
    if kind == "threads":
        with Client("http://test", transport=chosen, **options) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        client = AsyncClient("http://test", transport=chosen, **options)
        try:
            yield Blocking(client, runner)
        finally:
            runner.run(client.close())


def app_transport(kind: str, data: Path, **settings: Any) -> Any:
    """The service in this process as a transport."""
    app = create_app(Settings(data=data, **settings))
    return AppTransport(app) if kind == "threads" else AsyncAppTransport(app)


class Watched(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Notes requests on their way to another transport.

    `after` is called with each request and its response, which it may keep from coming back by raising, or replace.
    """

    def __init__(self, inner: Any, after: Callable[[httpx.Request, httpx.Response], httpx.Response | None]) -> None:
        self.inner, self.after = inner, after
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = self.inner.handle_request(request)
        return self.after(request, response) or response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = await self.inner.handle_async_request(request)
        return self.after(request, response) or response

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        await self.inner.aclose()


class StoppedClock(Clock):
    """Nothing waits; `waits` has how long it would have been, and `luck` is what chance gives."""

    def __init__(self, luck: float = 1.0) -> None:
        self.time = 1000.0
        self.luck = luck
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def date(self) -> float:
        return 1_700_000_000.0 + self.time

    def chance(self) -> float:
        return self.luck

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)
