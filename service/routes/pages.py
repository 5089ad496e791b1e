"""Pages for people: the dashboard at /ui, and the description of the API at /docs.

They are files, the same for everyone, and need no key: what they show they ask the API for. Browsers are told to take
scripts and styles from this server alone, and to send nothing elsewhere.
"""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from service.assets import Assets, read_assets
from service.headers import header

INDEX = "index.html"
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
_HEADERS = {
    "Cache-Control": "no-cache",  # to be asked for again each time, which the ETag makes cheap
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")


@cache
def ui_assets() -> Assets:
    """The files of the dashboard."""
    return read_assets("service", "ui")


@cache
def docs_assets() -> Assets:
    """The files of the description: Swagger UI, from a package that carries it, and a page that starts it."""
    return {**read_assets("service", "apidocs"), **read_assets("fastapi_offline", "static", only=_SWAGGER)}


docs = APIRouter(include_in_schema=False, tags=["pages"])
dashboard = APIRouter(include_in_schema=False, tags=["pages"])


@docs.get("/docs")
async def docs_page(request: Request) -> Response:
    """The description of the API, to be read and tried."""
    return _file(request, docs_assets(), INDEX)


@docs.get("/docs/{name:path}")
async def docs_file(request: Request, name: str) -> Response:
    """A script or a style of the description."""
    return _file(request, docs_assets(), name)


@dashboard.get("/ui")
async def ui_page() -> Response:
    """To the dashboard, whose files are found by paths that start there."""
    return RedirectResponse("ui/")


@dashboard.get("/ui/{name:path}")
async def ui_file(request: Request, name: str) -> Response:
    """The dashboard, or one of its files."""
    return _file(request, ui_assets(), name or INDEX)


def include(app: FastAPI, *, ui: bool) -> None:
    """Put the pages into an app: the description of the API, and, if it is wanted, the dashboard."""

    async def root(request: Request) -> Response:
        """A person with a browser is shown what there is."""
        person = ui and "text/html" in header(request.scope, b"accept")
        return RedirectResponse("ui/" if person else "docs")

    app.add_api_route("/", root, include_in_schema=False, tags=["pages"])
    app.include_router(docs)
    if ui:
        app.include_router(dashboard)


def _file(request: Request, assets: Assets, name: str) -> Response:
    asset = assets.get(name)
    if asset is None:
        raise HTTPException(404)
    headers = {**_HEADERS, "ETag": asset.etag}
    if asset.etag in header(request.scope, b"if-none-match"):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.media_type, headers=headers)
