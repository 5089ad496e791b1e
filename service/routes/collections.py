"""Routes that act on collections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from service import errors
from service.body import json_body, parse, read_json
from service.catalog import Catalog, Entry
from service.errors import Fault, UnknownModelError
from service.jobs import reencode as jobs
from service.responses import Json
from service.routes.common import (
    BODY_PROBLEMS,
    COLLECTION_PROBLEMS,
    STORE_PROBLEMS,
    WRITE_PROBLEMS,
    MeantCollection,
    NamedCollection,
    RuntimeArg,
)
from service.routes.guard import CallerArg, guarded, needs
from service.routes.queued import QUEUED, JobKey, queued
from service.runtime import Runtime
from service.schemas import examples
from service.schemas.admin import CollectionInfo, CollectionList, CollectionRequest, ReencodeRequest
from service.schemas.jobs import JobInfo
from service.writing import Asked

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
    responses=guarded(
        *BODY_PROBLEMS,
        errors.UnknownModelError,
        errors.CollectionConflictError,
        errors.AliasConflictError,
        errors.UnknownEncoderError,
        errors.EncoderMismatchError,
        *WRITE_PROBLEMS,
    )
    | {201: {"model": CollectionInfo, "description": "It is new."}},
    openapi_extra=json_body(CollectionRequest, **examples.COLLECTION),
)
async def put(request: Request, runtime: RuntimeArg, collection: NamedCollection) -> Response:
    """Create a collection. If it exists with the same model, nothing changes but its indexes and encoders."""
    body = await read_json(request, runtime.settings.max_body_bytes)
    return await runtime.writes.run(_put, runtime.catalog, collection, body)


@router.get(
    "/{collection}",
    dependencies=[needs("search")],
    response_model=CollectionInfo,
    responses=guarded(errors.UnknownCollectionError, errors.InvalidRequestError),
)
async def get(runtime: RuntimeArg, collection: MeantCollection) -> Response:
    """One collection."""
    return Json(describe(runtime.catalog.entry(collection)))


@router.delete(
    "/{collection}",
    dependencies=[needs("admin")],
    status_code=204,
    responses=guarded(
        errors.UnknownCollectionError, errors.AliasConflictError, errors.InvalidRequestError, *WRITE_PROBLEMS
    ),
)
async def delete(runtime: RuntimeArg, collection: NamedCollection) -> Response:
    """Delete a collection with all its items, by its own name, and while no alias leads to it. Its model stays."""
    await runtime.writes.run(runtime.catalog.drop_collection, collection)
    return Response(status_code=204)


@router.post(
    "/{collection}/reencode",
    dependencies=[needs("admin")],
    status_code=202,
    response_model=JobInfo,
    responses=guarded(
        *COLLECTION_PROBLEMS,
        *BODY_PROBLEMS,
        errors.UnknownModelError,
        errors.ReencodeError,
        errors.ReencodingError,
        errors.JobsFullError,
        errors.KeyReusedError,
        *WRITE_PROBLEMS,
    )
    | QUEUED,
    openapi_extra=json_body(ReencodeRequest, **examples.REENCODE),
)
async def reencode(
    request: Request, runtime: RuntimeArg, caller: CallerArg, collection: MeantCollection, key: JobKey = None
) -> Response:
    """Encode all items anew by another model, from the features that the collection keeps, as a job.

    Searches and writes go on meanwhile, with the model that there was; at its end they go over to the other at once.
    The result of the job is `{"items": ..., "seconds": ..., "before": ..., "after": ...}`. Not with an API key for some
    collections only.
    """
    caller.check_unlimited()
    runtime.catalog.collection(collection)
    body = await read_json(request, runtime.settings.max_body_bytes)
    return await runtime.writes.run(_reencode, runtime, collection, body, Asked.of(key, "reencode", collection, body))


def describe(entry: Entry) -> dict[str, Any]:
    """A collection as `CollectionInfo`."""
    view = None if entry.collection is None else entry.collection.view
    state = "ready" if view is not None else "loading" if entry.failure is None else "failed"
    return {
        "name": entry.record.name,
        "model": entry.record.model,
        "indexes": entry.indexes,
        "encoders": entry.encoders,
        "keep": entry.record.keep,
        "state": state,
        "items": None if view is None else view.items,
        "databases": None if view is None else {name: table.rows for name, table in view.tables.items()},
        "code_bytes": None if view is None else view.code_bytes,
    }


def _put(catalog: Catalog, name: str, body: bytes) -> Response:
    request = parse(body, CollectionRequest)
    with _model_named():
        entry, new = catalog.create_collection(name, request.model, request.indexes, request.keep, request.encoders)
    return Json(describe(entry), status_code=201 if new else 200)


def _reencode(runtime: Runtime, collection: str, body: bytes, asked: Asked | None) -> Response:
    model = parse(body, ReencodeRequest).model
    with _model_named():
        return queued(runtime.jobs, lambda: jobs.add(runtime.jobs, runtime.catalog, collection, model, asked))


@contextmanager
def _model_named() -> Iterator[None]:
    """Tell of a model that there is none of as a fault of the body."""
    try:
        yield
    except UnknownModelError as error:
        error.faults = (Fault.at(("model",), error.discreet),)
        raise
