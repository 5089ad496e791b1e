"""Routes that show what is in a collection."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from service.errors import InvalidRequestError
from service.responses import Json
from service.routes.common import COLLECTION_PROBLEMS, STORE_PROBLEMS, MeantCollection, RuntimeArg
from service.routes.guard import guarded, needs
from service.schemas.filters import Key
from service.schemas.insight import MAX_SAMPLE, LatentMap, Usage

router = APIRouter(prefix="/collections/{collection}", tags=["collections"])

_PROBLEMS = guarded(*COLLECTION_PROBLEMS, InvalidRequestError, *STORE_PROBLEMS)


@router.get("/usage", dependencies=[needs("search")], response_model=Usage, responses=_PROBLEMS)
async def usage(runtime: RuntimeArg, collection: MeantCollection) -> Response:
    """How often each codeword of the model is used, over the codes of all databases.

    Codebooks that are used evenly tell items apart best. All codes are counted: 10^8 of 5 bytes take about a second.
    """
    return Json(await runtime.insight.usage(runtime.catalog.collection(collection)))


@router.get("/map", dependencies=[needs("search")], response_model=LatentMap, responses=_PROBLEMS)
async def map_(
    runtime: RuntimeArg,
    collection: MeantCollection,
    sample: Annotated[
        int, Query(ge=1, le=MAX_SAMPLE, description="Most points; the databases have their shares of them.")
    ] = MAX_SAMPLE,
    label: Annotated[Key | None, Query(description="Payload key whose value is given with each point.")] = None,
) -> Response:
    """Where a sample of the items lies, in the two directions of the latent space in which it is spread most.

    Points are what codes decode to, divided by their lengths if the model's metric is `cosine`.
    """
    return Json(await runtime.insight.map(runtime.catalog.collection(collection), sample, label))
