"""Routes for those who run the server."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ccq_core import __version__
from service.errors import ForbiddenError, NotReadyError, UnauthenticatedError
from service.problems import problem_responses
from service.responses import Json
from service.routes.common import RuntimeArg
from service.routes.guard import ANY_KEY, SCRAPING, CallerArg, guarded
from service.schemas.admin import CallerInfo, Status, Version
from service.schemas.limits import Limits, limits
from service.scrape import CONTENT_TYPE, scrape

router = APIRouter(tags=["operations"])


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


@router.get("/caller", dependencies=[ANY_KEY], response_model=CallerInfo, responses=guarded())
async def caller_(caller: CallerArg) -> Response:
    """Who asks, and what that caller may do: for programs that offer only what works."""
    return Json({"name": caller.name, "scopes": caller.scopes, "collections": caller.collections})


@router.get("/limits", dependencies=[ANY_KEY], response_model=Limits, responses=guarded())
async def limits_(runtime: RuntimeArg, caller: CallerArg) -> Response:
    """How long, how many and how much a request may be, and how many at one time."""
    dimensions = {
        entry.record.name: {
            name: modality.dim for name, modality in entry.collection.view.coder.model.modalities_.items()
        }
        for entry in runtime.catalog.entries()
        if entry.collection is not None and caller.sees(entry.record.name)
    }
    encoders = {name: {"takes": each.takes, "dim": each.dim} for name, each in runtime.catalog.encoders.items()}
    return Json(limits(runtime.settings, dimensions, encoders))


@router.get(
    "/metrics",
    dependencies=[SCRAPING],
    response_class=Response,
    responses=problem_responses(UnauthenticatedError, ForbiddenError)
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}},
)
async def metrics(runtime: RuntimeArg) -> Response:
    """What the server has counted and measured, for Prometheus."""
    return Response(scrape(runtime.catalog, runtime.jobs), headers={"Content-Type": CONTENT_TYPE})
