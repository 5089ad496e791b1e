"""Routes that act on models."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ccq_core.errors import ModelCorruptError, ModelFormatError, ModelTruncatedError, ModelVersionError
from service import errors
from service.body import read_bytes
from service.catalog import Catalog
from service.problems import problem_responses
from service.responses import Json
from service.routes.common import STORE_PROBLEMS, WRITE_PROBLEMS, RuntimeArg
from service.schemas.admin import ModelInfo, ModelList
from service.schemas.names import ModelPath
from service.store.interface import ModelRecord
from service.traits import Traits

router = APIRouter(prefix="/models", tags=["models"])

FILE_TYPE = "application/octet-stream"
_FILE: dict[str, Any] = {"content": {FILE_TYPE: {"schema": {"type": "string", "format": "binary"}}}}


@router.get("", response_model=ModelList, responses=problem_responses(*STORE_PROBLEMS))
async def list_(runtime: RuntimeArg) -> Response:
    """All models."""

    def work() -> Response:
        catalog = runtime.catalog
        return Json({"models": [describe(catalog, *found) for found in catalog.models()]})

    return await runtime.reads.run(work)


@router.put(
    "/{model}",
    response_model=ModelInfo,
    responses=problem_responses(
        errors.EmptyBodyError,
        errors.BodyTooLargeError,
        errors.EncodingError,
        errors.ModelInUseError,
        errors.InvalidRequestError,
        ModelFormatError,
        ModelTruncatedError,
        ModelCorruptError,
        ModelVersionError,
        *WRITE_PROBLEMS,
    )
    | {201: {"model": ModelInfo, "description": "The name is new."}},
    openapi_extra={"requestBody": {"required": True, **_FILE}},
)
async def put(request: Request, runtime: RuntimeArg, model: ModelPath) -> Response:
    """Upload a model file, as `CCQ.save` writes it. A file under a name that no collection uses is replaced."""
    body = await read_bytes(request, runtime.settings.max_model_bytes)

    def work() -> Response:
        record, traits, new = runtime.catalog.put_model(model, body)
        return Json(describe(runtime.catalog, record, traits), status_code=201 if new else 200)

    return await runtime.writes.run(work)


@router.get(
    "/{model}",
    response_model=ModelInfo,
    responses=problem_responses(errors.UnknownModelError, errors.InvalidRequestError, *STORE_PROBLEMS)
    | {200: {**_FILE, "description": "What the model is, or with `file=true` its file."}},
)
async def get(
    runtime: RuntimeArg,
    model: ModelPath,
    file: Annotated[bool, Query(description="Give the model file itself instead.")] = False,
) -> Response:
    """One model: what it is, or its file."""

    def work() -> Response:
        if file:
            headers = {"Content-Disposition": f'attachment; filename="{model}.ccq"'}
            return Response(runtime.catalog.model_file(model), media_type=FILE_TYPE, headers=headers)
        return Json(describe(runtime.catalog, *runtime.catalog.model(model)))

    return await runtime.reads.run(work)


@router.delete(
    "/{model}",
    status_code=204,
    responses=problem_responses(
        errors.UnknownModelError, errors.ModelInUseError, errors.InvalidRequestError, *WRITE_PROBLEMS
    ),
)
async def delete(runtime: RuntimeArg, model: ModelPath) -> Response:
    """Delete a model that no collection uses."""
    await runtime.writes.run(runtime.catalog.delete_model, model)
    return Response(status_code=204)


def describe(catalog: Catalog, record: ModelRecord, traits: Traits) -> dict[str, Any]:
    """A model as `ModelInfo`."""
    return {
        "name": record.name,
        "checksum": record.checksum,
        "size": record.size,
        "created": record.created,
        "bits": traits.bits,
        "metric": traits.metric,
        "modalities": traits.modalities,
        "databases": traits.databases,
        "collections": [entry.record.name for entry in catalog.entries() if entry.record.model == record.name],
    }
