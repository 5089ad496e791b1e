"""The app factory. Nothing is built at import."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from ccq_core import __version__
from service import apidoc, problems
from service.middleware import RequestGuard
from service.routes import collections, items, models, operations
from service.runtime import Runtime
from service.settings import Settings


def create_app(settings: Settings, *, open_runtime: Callable[[Settings], Runtime] = Runtime.open) -> FastAPI:
    """The service as an ASGI app.

    Parameters
    ----------
    settings:
        See `Settings`.
    open_runtime:
        Called when the server starts; what it returns is closed when the server ends.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        runtime = open_runtime(settings)
        app.state.runtime = runtime
        try:
            runtime.start()
            yield
        finally:
            runtime.close()

    app = FastAPI(
        title="CCQ Search",
        version=__version__,
        description=apidoc.DESCRIPTION,
        openapi_tags=apidoc.TAGS,
        lifespan=lifespan,
        redirect_slashes=False,
        generate_unique_id_function=apidoc.operation_id,
        redoc_url=None,
    )
    app.add_middleware(RequestGuard)
    problems.install(app)
    items.include(app)
    for router in (collections.router, models.router, operations.router):
        app.include_router(router)
    apidoc.install(app)
    return app
