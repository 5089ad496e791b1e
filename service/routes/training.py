"""The route that trains models."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from ccq_core.errors import FeatureError
from service import errors
from service.body import json_body, media_type, parse, read_json, save_file, validated
from service.errors import Fault, InvalidRequestError, MediaTypeError
from service.jobs import training
from service.jobs.upload import UPLOAD
from service.places import shorten
from service.responses import Json
from service.routes.common import BODY_PROBLEMS, WRITE_PROBLEMS, RuntimeArg
from service.routes.guard import CallerArg, guarded, needs
from service.runtime import Runtime
from service.schemas import examples
from service.schemas.jobs import JobInfo
from service.schemas.names import ModelPath
from service.schemas.training import TrainingOptions, TrainingRequest, from_query, query_parameters
from service.store.jobrecords import JobRecord

router = APIRouter(prefix="/models", tags=["models"])

_FILE_TYPE = "application/octet-stream"


def _bodies() -> dict[str, Any]:
    """The two kinds of body for the OpenAPI document."""
    made = json_body(TrainingRequest, **examples.TRAINING)
    made["requestBody"]["content"][_FILE_TYPE] = {"schema": {"type": "string", "format": "binary"}}
    return {**made, "parameters": query_parameters()}


@router.post(
    "/{model}/train",
    dependencies=[needs("admin")],
    status_code=202,
    response_model=JobInfo,
    responses=guarded(
        *BODY_PROBLEMS,
        errors.CoreInputError,
        FeatureError,
        errors.UnknownCollectionError,
        errors.ModelInUseError,
        errors.JobsFullError,
        *WRITE_PROBLEMS,
    )
    | {
        202: {
            "description": "It is queued.",
            "headers": {"Location": {"description": "Path of the job.", "schema": {"type": "string"}}},
        }
    },
    openapi_extra=_bodies(),
)
async def train(request: Request, runtime: RuntimeArg, caller: CallerArg, model: ModelPath) -> Response:
    """Train a model in the background, and store it under this name.

    On what a collection keeps: `application/json`. Or on an `.npz` file of NumPy, an array (n, P) for each modality and
    rows of NaN for what an object lacks: `application/octet-stream`, with options in the query, those that are no
    strings as JSON. Not with an API key for some collections only.
    """
    caller.check_unlimited()
    kind = media_type(request)
    if kind.lower() == _FILE_TYPE:
        record = await _on_file(request, runtime, model)
    elif "json" in kind.lower():
        record = await _on_collection(request, runtime, model)
    else:
        got = shorten(kind) if kind else "none"
        raise MediaTypeError(f"Content-Type: expected application/json or {_FILE_TYPE}, got {got}")
    return Json(runtime.jobs.described(record), status_code=202, headers={"Location": f"/jobs/{record.id}"})


async def _on_collection(request: Request, runtime: Runtime, model: str) -> JobRecord:
    for name in request.query_params:
        reason = f"{shorten(name)}: expected options in the JSON body, got one in the query"
        raise InvalidRequestError.from_faults([Fault(f"?{name}", reason)])
    body = await read_json(request, runtime.settings.max_body_bytes)

    def work() -> JobRecord:
        asked = parse(body, TrainingRequest)
        return training.add_from_collection(runtime.jobs, runtime.catalog, runtime.settings, model, asked)

    return await runtime.writes.run(work)


async def _on_file(request: Request, runtime: Runtime, model: str) -> JobRecord:
    options = _options(request)
    runtime.catalog.check_unused(model)
    stack = ExitStack()
    try:
        draft = await runtime.writes.run(lambda: stack.enter_context(runtime.jobs.draft(training.KIND)))
        await save_file(request, runtime.settings.max_training_bytes, draft.directory / UPLOAD)
        return await runtime.writes.run(
            lambda: training.add_from_file(runtime.jobs, runtime.catalog, runtime.settings, model, draft, options)
        )
    finally:
        await to_thread.run_sync(stack.close)


def _options(request: Request) -> TrainingOptions:
    """Options from the query."""
    try:
        return validated(from_query(request.query_params), TrainingOptions)
    except InvalidRequestError as error:
        faults = [replace(fault, pointer=f"?{fault.pointer.removeprefix('#/')}") for fault in error.faults]
        raise InvalidRequestError.from_faults(faults) from None
