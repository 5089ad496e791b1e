"""Routes that act on models."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ccq_core.errors import ModelCorruptError, ModelFormatError, ModelTruncatedError, ModelVersionError
from service import errors
from service.access import Caller
from service.body import read_file
from service.catalog import Catalog
from service.responses import Json
from service.routes.common import STORE_PROBLEMS, WRITE_PROBLEMS, RuntimeArg
from service.routes.guard import CallerArg, guarded, needs
from service.schemas.admin import ModelInfo, ModelList
from service.schemas.names import ModelPath
from service.store.interface import ModelRecord
from service.traits import Traits

router = APIRouter(prefix="/models", tags=["models"])

FILE_TYPE = "application/octet-stream"
_FILE: dict[str, Any] = {"content": {FILE_TYPE: {"schema": {"type": "string", "format": "binary"}}}}


@router.get("", dependencies=[needs("search")], response_model=ModelList, responses=guarded(*STORE_PROBLEMS))
async def list_(runtime: RuntimeArg, caller: CallerArg) -> Response:
    """All models; with an API key for some collections only those of these."""

    def work() -> Response:
        models = [describe(runtime.catalog, caller, *found) for found in runtime.catalog.models()]
        return Json({"models": [model for model in models if caller.collections is None or model["collections"]]})

    return await runtime.reads.run(work)


@router.put(
    "/{model}",
    dependencies=[needs("admin")],
    response_model=ModelInfo,
    responses=guarded(
        errors.EmptyBodyError,
        errors.BodyTooLargeError,
        errors.EncodingError,
        errors.ModelInUseError,
        errors.InvalidRequestError,
        errors.MemoryLimitError,
        ModelFormatError,
        ModelTruncatedError,
        ModelCorruptError,
        ModelVersionError,
        *WRITE_PROBLEMS,
    )
    | {201: {"model": ModelInfo, "description": "The name is new."}},
    openapi_extra={"requestBody": {"required": True, **_FILE}},
)
async def put(request: Request, runtime: RuntimeArg, caller: CallerArg, model: ModelPath) -> Response:
    """Upload a model file, as `CCQ.save` writes it. A file under a name that no collection uses is replaced.

    Not with an API key for some collections only.
    """
    caller.check_unlimited()
    body = await read_file(request, runtime.settings.max_model_bytes)

    def work() -> Response:
        record, traits, new = runtime.catalog.put_model(model, body)
        return Json(describe(runtime.catalog, caller, record, traits), status_code=201 if new else 200)

    return await runtime.writes.run(work)


@router.get(
    "/{model}",
    dependencies=[needs("search")],
    response_model=ModelInfo,
    responses=guarded(errors.UnknownModelError, errors.InvalidRequestError, *STORE_PROBLEMS)
    | {200: {**_FILE, "description": "What the model is, or with `file=true` its file."}},
)
async def get(
    runtime: RuntimeArg,
    caller: CallerArg,
    model: ModelPath,
    file: Annotated[bool, Query(description="Give the model file itself instead.")] = False,
) -> Response:
    """One model: what it is, or its file. With an API key for some collections only if one of them uses it."""
    if not _users(runtime.catalog, caller, model):
        caller.check_unlimited()

    def work() -> Response:
        if file:
            headers = {"Content-Disposition": f'attachment; filename="{model}.ccq"'}
            return Response(runtime.catalog.model_file(model), media_type=FILE_TYPE, headers=headers)
        return Json(describe(runtime.catalog, caller, *runtime.catalog.model(model)))

    return await runtime.reads.run(work)


@router.delete(
    "/{model}",
    dependencies=[needs("admin")],
    status_code=204,
    responses=guarded(errors.UnknownModelError, errors.ModelInUseError, errors.InvalidRequestError, *WRITE_PROBLEMS),
)
async def delete(runtime: RuntimeArg, caller: CallerArg, model: ModelPath) -> Response:
    """Delete a model that no collection uses. Not with an API key for some collections only."""
    caller.check_unlimited()
    await runtime.writes.run(runtime.catalog.delete_model, model)
    return Response(status_code=204)


def describe(catalog: Catalog, caller: Caller, record: ModelRecord, traits: Traits) -> dict[str, Any]:
    """A model as `ModelInfo`, with those collections that the caller sees."""
    return {
        "name": record.name,
        "checksum": record.checksum,
        "size": record.size,
        "created": record.created,
        "bits": traits.bits,
        "dim": traits.dim,
        "metric": traits.metric,
        "modalities": traits.modalities,
        "databases": traits.databases,
        "losses": traits.losses,
        "collections": _users(catalog, caller, record.name),
    }


def _users(catalog: Catalog, caller: Caller, model: str) -> list[str]:
    """The collections that use a model, of those that the caller sees."""
    users = [entry.record.name for entry in catalog.entries() if entry.record.model == model]
    return [name for name in users if caller.sees(name)]
