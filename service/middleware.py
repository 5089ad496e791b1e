"""The layers around the routes: request ids, problems for errors that nobody foresaw, and the end of long requests."""

from __future__ import annotations

import asyncio
import logging

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import deadline, requestid, watching
from service.admission import Admission
from service.errors import RequestTimeoutError, UnavailableError
from service.problems import internal_problem, known_problem

_HEADER = requestid.HEADER.lower().encode()

log = logging.getLogger(__name__)

_STOPPED = UnavailableError("the server stops and cannot wait longer; a write may have been carried out or not")


class RequestGuard:
    """Gives each request its id, and each response its header; turns an unforeseen error into a problem.

    HEAD is answered as GET is; the server leaves the body out.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = requestid.assign(scope)
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", watching.METHOD: "HEAD"}
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], (_HEADER, given.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # by the server, which ends once all requests have
            log.warning("request %s was ended: the server stops", given)
            if not started:
                await known_problem(Request(scope), _STOPPED)(scope, receive, send_with_id)
        except Exception as error:
            if started:  # too late for another response: the server closes the connection
                raise
            await internal_problem(Request(scope), error)(scope, receive, send_with_id)


class RequestLimits:
    """Gives each request its share of what the server takes on, and answers it when its time is over.

    A request that was answered so may still be at work, in a thread that nothing can stop: it keeps its share until it
    has ended. What it had waited for is not begun.

    Parameters
    ----------
    admission:
        What all requests share.
    seconds:
        How long a request may take.
    """

    def __init__(self, app: ASGIApp, admission: Admission, seconds: float) -> None:
        self._app = app
        self._admission = admission
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        share = self._admission.share(scope)
        deadline.begin(self._seconds)
        exchange = _Exchange(scope, receive, send, self._seconds)
        timer = asyncio.get_running_loop().call_later(self._seconds, exchange.end)
        try:
            await self._app(scope, receive, exchange.send)
        except Exception:
            if not exchange.over:
                raise
            # The server would close the connection, on which the client's next request may be under way.
            log.exception("request %s failed after it had been answered", requestid.request_id(scope))
        finally:
            timer.cancel()
            share.give_back()
        await exchange.ended()


class _Exchange:
    """One request and its one response: the route's, or that its time is over, whichever comes first."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, seconds: float) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._seconds = seconds
        self._started = False
        self._end: asyncio.Task[None] | None = None

    async def send(self, message: Message) -> None:
        if not self.over:
            self._started = True
            await self._send(message)

    @property
    def over(self) -> bool:
        """Whether the response is that the time is over."""
        return self._end is not None

    def end(self) -> None:
        """The time is over."""
        if not self._started:
            self._end = asyncio.ensure_future(self._answer())

    async def ended(self) -> None:
        """Return once the answer has been sent, if there was one."""
        if self._end is not None:
            await self._end

    async def _answer(self) -> None:
        late = RequestTimeoutError(
            f"the request took longer than {self._seconds:g} seconds; if it was a write, it may still be carried out"
        )
        await known_problem(Request(self._scope), late)(self._scope, self._receive, self._send)
