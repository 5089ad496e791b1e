"""Routes that act on aliases."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from service import errors
from service.body import json_body, parse, read_json
from service.responses import Json
from service.routes.common import BODY_PROBLEMS, WRITE_PROBLEMS, RuntimeArg
from service.routes.guard import CallerArg, guarded, needs
from service.schemas import examples
from service.schemas.aliases import AliasInfo, AliasList, AliasRequest
from service.schemas.names import AliasPath

router = APIRouter(prefix="/aliases", tags=["aliases"])


@router.get("", dependencies=[needs("search")], response_model=AliasList, responses=guarded())
async def list_(runtime: RuntimeArg, caller: CallerArg) -> Response:
    """All aliases of the collections that the API key is good for."""
    found = runtime.catalog.aliases().items()
    return Json({"aliases": [describe(alias, collection) for alias, collection in found if caller.sees(collection)]})


@router.put(
    "/{alias}",
    dependencies=[needs("admin")],
    response_model=AliasInfo,
    responses=guarded(*BODY_PROBLEMS, errors.UnknownCollectionError, errors.AliasConflictError, *WRITE_PROBLEMS)
    | {201: {"model": AliasInfo, "description": "It is new."}},
    openapi_extra=json_body(AliasRequest, **examples.ALIAS),
)
async def put(request: Request, runtime: RuntimeArg, caller: CallerArg, alias: AliasPath) -> Response:
    """Let an alias lead to a collection, from now on and all at once. Not with an API key for some collections only."""
    caller.check_unlimited()
    body = await read_json(request, runtime.settings.max_body_bytes)

    def work() -> Response:
        collection = parse(body, AliasRequest).collection
        new = runtime.catalog.put_alias(alias, collection)
        return Json(describe(alias, collection), status_code=201 if new else 200)

    return await runtime.writes.run(work)


@router.get(
    "/{alias}",
    dependencies=[needs("search")],
    response_model=AliasInfo,
    responses=guarded(errors.UnknownAliasError, errors.InvalidRequestError),
)
async def get(runtime: RuntimeArg, caller: CallerArg, alias: AliasPath) -> Response:
    """One alias."""
    collection = runtime.catalog.aliases().get(alias)
    caller.check_collection(alias, collection)
    if collection is None:
        raise errors.UnknownAliasError(alias, runtime.catalog.aliases())
    return Json(describe(alias, collection))


@router.delete(
    "/{alias}",
    dependencies=[needs("admin")],
    status_code=204,
    responses=guarded(errors.UnknownAliasError, errors.InvalidRequestError, *WRITE_PROBLEMS),
)
async def delete(runtime: RuntimeArg, caller: CallerArg, alias: AliasPath) -> Response:
    """Delete an alias. Its collection stays. Not with an API key for some collections only."""
    caller.check_unlimited()
    await runtime.writes.run(runtime.catalog.delete_alias, alias)
    return Response(status_code=204)


def describe(alias: str, collection: str) -> dict[str, str]:
    """An alias as `AliasInfo`."""
    return {"alias": alias, "collection": collection}
