"""The app factory. Nothing is built at import."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from ccq_core import __version__
from service import apidoc, problems, requestid, tracing
from service.admission import Admission
from service.middleware import RequestGuard, RequestLimits
from service.responses import REPLAYED
from service.routes import aliases, collections, insight, items, jobs, models, operations, pages, snapshots, training
from service.runtime import Runtime
from service.settings import Settings
from service.shortcut import Shortcut
from service.watching import Watch


def create_app(settings: Settings, *, open_runtime: Callable[[Settings], Runtime] = Runtime.open) -> FastAPI:
    """The service as an ASGI app.

    Parameters
    ----------
    settings:
        See `Settings`.
    open_runtime:
        Called when the server starts; what it returns is closed when the server ends.

    Raises
    ------
    SettingError
        Traces are to be sent, and what that needs is not installed.
    """
    traces = tracing.to(settings.otel_endpoint)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        runtime = open_runtime(settings)
        app.state.runtime = runtime
        try:
            runtime.start()
            yield
        finally:
            runtime.close()
            traces.close()

    app = FastAPI(
        title="CCQ Search",
        version=__version__,
        description=apidoc.DESCRIPTION,
        openapi_tags=apidoc.TAGS,
        lifespan=lifespan,
        redirect_slashes=False,
        generate_unique_id_function=apidoc.operation_id,
        docs_url=None,  # `service.routes.pages` has it, without scripts from elsewhere
        redoc_url=None,
        **traces.options,
    )
    # Each is put around those before it.
    if not traces.sent:  # the router has them
        app.add_middleware(Shortcut)
    app.add_middleware(RequestLimits, admission=Admission(settings), seconds=settings.request_seconds)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Idempotency-Key",
                "If-Match",
                "X-API-Key",
                requestid.HEADER,
            ],
            expose_headers=[requestid.HEADER, "ETag", REPLAYED, "Retry-After"],
        )
    app.add_middleware(Watch, log_all=settings.access_log, slow_ms=settings.slow_ms)
    app.add_middleware(RequestGuard)
    problems.install(app)
    items.include(app)
    for router in (
        collections.router,
        insight.router,
        aliases.router,
        models.router,
        training.router,
        snapshots.router,
        jobs.router,
        operations.router,
    ):
        app.include_router(router)
    pages.include(app, ui=settings.ui)
    apidoc.install(app)
    return app
