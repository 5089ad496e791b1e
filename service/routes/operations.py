"""Routes for those who run the server."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ccq_core import __version__
from service.errors import NotReadyError
from service.problems import problem_responses
from service.responses import Json
from service.routes.common import RuntimeArg
from service.schemas.admin import Status, Version

router = APIRouter(tags=["operations"])


@router.get("/", include_in_schema=False)
async def root() -> Response:
    """A person with a browser is shown what there is."""
    return RedirectResponse("/docs")


@router.get("/livez", response_model=Status)
async def livez() -> Response:
    """The server is alive: it answers. Never waits for a search or a write."""
    return Json({"status": "alive"})


@router.get("/readyz", response_model=Status, responses=problem_responses(NotReadyError))
async def readyz(runtime: RuntimeArg) -> Response:
    """Every collection is loaded. If not, `errors` says how far each is."""
    runtime.catalog.check_ready()
    return Json({"status": "ready"})


@router.get("/version", response_model=Version)
async def version() -> Response:
    """What runs here."""
    return Json({"name": "ccq-search", "version": __version__})
