"""The outermost layer: request ids, and problems for errors that nobody foresaw."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import requestid
from service.problems import internal_problem


class RequestGuard:
    """Gives each request its id, and each response its header; turns an unforeseen error into a problem."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = requestid.assign(scope)
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)[requestid.HEADER] = given
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            if started:  # too late for another response: the server closes the connection
                raise
            await internal_problem(Request(scope), error)(scope, receive, send_with_id)
