"""A short way to the busiest route: searches are taken to it without the router, which costs more than some searches.

The route itself is the same function, behind the same guard, and its errors become the same problems. Whatever is not
plainly one of its requests goes the long way.
"""

from __future__ import annotations

import re
from types import SimpleNamespace

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ccq_core.errors import CCQError
from service import problems
from service.errors import ServiceError
from service.routes import items
from service.routes.common import collection_name
from service.routes.guard import Guard
from service.schemas.names import NAME_PATTERN

_PATH = re.compile(rf"/search|/collections/({NAME_PATTERN.strip('^$')})/search")
_GUARD = Guard("search")
_ROUTE = SimpleNamespace(path_format="/search")  # as the router leaves it in the scope, for whoever asks which it was


class Shortcut:
    """Takes searches to their route, and all other requests to the router."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        (collection,) = found.groups()
        scope["route"] = _ROUTE
        scope["path_params"] = {} if collection is None else {"collection": collection}
        request = Request(scope, receive)
        runtime = scope["app"].state.runtime
        try:
            await _GUARD(request)
            response = await items.search(request, runtime, await collection_name(request))
        except (ServiceError, CCQError) as error:
            response = problems.on_known_error(request, error)
        await response(scope, receive, send)
