"""The layer that measures each request, and logs it if it is to be logged."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import metrics
from service.places import shorten

access_log = logging.getLogger("service.access")
slow_log = logging.getLogger("service.slow")

METHOD = "ccq.method"
"""Where a scope has the method that was asked for, if it is answered as another."""

UNKNOWN = "unknown"
_NOTES = "ccq.notes"
_INNER = "/collections/{collection}"


class Watch:
    """Measures requests; logs those that are slow, or all.

    Parameters
    ----------
    log_all:
        Whether every request is logged.
    slow_ms:
        What is slow, in milliseconds; 0: nothing.
    """

    def __init__(self, app: ASGIApp, log_all: bool, slow_ms: int) -> None:
        self._app = app
        self._log_all = log_all
        self._slow_ms = slow_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        metrics.began()
        started = time.perf_counter()
        failed = 500
        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            failed = 503  # `RequestGuard` answers
            raise
        finally:
            seconds = time.perf_counter() - started
            self._ended(scope, status or failed, seconds)

    def _ended(self, scope: Scope, status: int, seconds: float) -> None:
        route, method = route_of(scope), scope.get(METHOD, scope["method"])
        metrics.answered(route, method, status, seconds)
        slow = 0 < self._slow_ms < 1000 * seconds
        if not (slow or self._log_all):
            return
        facts = {"route": route, "method": method, "status": status, "took_ms": round(1000 * seconds, 1)}
        facts.update(scope.get(_NOTES, {}))
        if self._log_all:
            path = quote(scope["path"], errors="replace")
            sender = {"path": path, "client": (scope.get("client") or ("",))[0]}
            access_log.info("%s %s %d, %s ms", method, path, status, facts["took_ms"], extra={**facts, **sender})
        if slow:
            words = ", ".join(f"{name} {shorten(value)}" for name, value in facts.items())
            slow_log.warning("slow request: %s", words, extra=facts)


def note(scope: Scope, **facts: Any) -> None:
    """Remember of a request what the log should say: names and numbers, never what a client wants to find or store."""
    scope.setdefault(_NOTES, {}).update(facts)


def route_of(scope: Scope) -> str:
    """The template of a request's path, `unknown` where there is nothing at the path."""
    route = scope.get("route")
    template = getattr(route, "path_format", None)
    if template is None:
        return UNKNOWN
    if "collection" in scope.get("path_params", {}) and not template.startswith(_INNER):
        return f"{_INNER}{template}"  # of a router that is included a second time, under this prefix
    return str(template)
