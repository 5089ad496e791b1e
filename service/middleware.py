"""The outermost layer: request ids, and problems for errors that nobody foresaw."""

from __future__ import annotations

import asyncio
import logging

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import requestid
from service.errors import UnavailableError
from service.problems import internal_problem, kind_of, problem_response

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
            scope = {**scope, "method": "GET"}
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)[requestid.HEADER] = given
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # by the server, which ends once all requests have
            log.warning("request %s was ended: the server stops", given)
            if not started:
                stopped = problem_response(Request(scope), kind_of(_STOPPED), _STOPPED.detail)
                await stopped(scope, receive, send_with_id)
        except Exception as error:
            if started:  # too late for another response: the server closes the connection
                raise
            await internal_problem(Request(scope), error)(scope, receive, send_with_id)
