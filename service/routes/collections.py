"""Routes that act on collections."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from service import errors
from service.body import json_body, parse, read_json
from service.catalog import Catalog, Entry
from service.errors import Fault, UnknownModelError
from service.responses import Json
from service.routes.common import BODY_PROBLEMS, STORE_PROBLEMS, WRITE_PROBLEMS, NamedCollection, RuntimeArg
from service.routes.guard import CallerArg, guarded, needs
from service.schemas import examples
from service.schemas.admin import CollectionInfo, CollectionList, CollectionRequest

router = APIRouter(prefix="/collections", tags=["collections"])


@router.get("", dependencies=[needs("search")], response_model=CollectionList, responses=guarded(*STORE_PROBLEMS))
async def list_(runtime: RuntimeArg, caller: CallerArg) -> Response:
    """All collections that the API key is good for."""
    entries = [entry for entry in runtime.catalog.entries() if caller.sees(entry.record.name)]
    return Json({"collections": [describe(entry) for entry in entries]})


@router.put(
    "/{collection}",
    dependencies=[needs("admin")],
    response_model=CollectionInfo,
    responses=guarded(*BODY_PROBLEMS, errors.UnknownModelError, errors.CollectionConflictError, *WRITE_PROBLEMS)
    | {201: {"model": CollectionInfo, "description": "It is new."}},
    openapi_extra=json_body(CollectionRequest, **examples.COLLECTION),
)
async def put(request: Request, runtime: RuntimeArg, collection: NamedCollection) -> Response:
    """Create a collection. If it exists with the same model, nothing changes but its indexes."""
    body = await read_json(request, runtime.settings.max_body_bytes)
    return await runtime.writes.run(_put, runtime.catalog, collection, body)


@router.get(
    "/{collection}",
    dependencies=[needs("search")],
    response_model=CollectionInfo,
    responses=guarded(errors.UnknownCollectionError, errors.InvalidRequestError),
)
async def get(runtime: RuntimeArg, collection: NamedCollection) -> Response:
    """One collection."""
    return Json(describe(runtime.catalog.entry(collection)))


@router.delete(
    "/{collection}",
    dependencies=[needs("admin")],
    status_code=204,
    responses=guarded(errors.UnknownCollectionError, errors.InvalidRequestError, *WRITE_PROBLEMS),
)
async def delete(runtime: RuntimeArg, collection: NamedCollection) -> Response:
    """Delete a collection with all its items. Its model stays."""
    await runtime.writes.run(runtime.catalog.drop_collection, collection)
    return Response(status_code=204)


def describe(entry: Entry) -> dict[str, Any]:
    """A collection as `CollectionInfo`."""
    view = None if entry.collection is None else entry.collection.view
    state = "ready" if view is not None else "loading" if entry.failure is None else "failed"
    return {
        "name": entry.record.name,
        "model": entry.record.model,
        "indexes": entry.indexes,
        "keep": entry.record.keep,
        "state": state,
        "items": None if view is None else view.items,
        "databases": None if view is None else {name: table.rows for name, table in view.tables.items()},
    }


def _put(catalog: Catalog, name: str, body: bytes) -> Response:
    request = parse(body, CollectionRequest)
    try:
        entry, new = catalog.create_collection(name, request.model, request.indexes, request.keep)
    except UnknownModelError as error:
        raise UnknownModelError(request.model, [Fault.at(("model",), error.detail)]) from None
    return Json(describe(entry), status_code=201 if new else 200)
