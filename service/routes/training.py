"""The route that trains models."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from ccq_core.errors import FeatureError
from service import errors
from service.body import chunks, json_body, media_type, parse, read_json, save_file, validated
from service.errors import Fault, InvalidRequestError, MediaTypeError, StorageBusyError
from service.jobs import training
from service.jobs.runner import Jobs
from service.jobs.upload import UPLOAD
from service.places import shorten
from service.routes.common import BODY_PROBLEMS, WRITE_PROBLEMS, RuntimeArg
from service.routes.guard import CallerArg, guarded, needs
from service.routes.queued import QUEUED, JobKey, queued
from service.runtime import Runtime
from service.schemas import examples
from service.schemas.jobs import JobInfo
from service.schemas.names import ModelPath
from service.schemas.training import TrainingOptions, TrainingRequest, from_query, query_parameters
from service.store.jobrecords import JobRecord
from service.writing import Asked

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
        errors.KeyReusedError,
        *WRITE_PROBLEMS,
    )
    | QUEUED,
    openapi_extra=_bodies(),
)
async def train(
    request: Request, runtime: RuntimeArg, caller: CallerArg, model: ModelPath, key: JobKey = None
) -> Response:
    """Train a model in the background, and store it under this name.

    On what a collection keeps: `application/json`. Or on an `.npz` file of NumPy, an array (n, P) for each modality and
    rows of NaN for what an object lacks: `application/octet-stream`, with options in the query, those that are no
    strings as JSON. Not with an API key for some collections only.
    """
    caller.check_unlimited()
    kind = media_type(request)
    if kind.lower() == _FILE_TYPE:
        return await _on_file(request, runtime, model, key)
    if "json" in kind.lower():
        return await _on_collection(request, runtime, model, key)
    got = shorten(kind) if kind else "none"
    raise MediaTypeError(f"Content-Type: expected application/json or {_FILE_TYPE}, got {got}")


async def _on_collection(request: Request, runtime: Runtime, model: str, key: str | None) -> Response:
    for name in request.query_params:
        reason = f"{shorten(name)}: expected options in the JSON body, got one in the query"
        raise InvalidRequestError.from_faults([Fault(f"?{name}", reason)])
    body = await read_json(request, runtime.settings.max_body_bytes)
    jobs, asked = runtime.jobs, Asked.of(key, "train", model, body)

    def work() -> Response:
        wanted = parse(body, TrainingRequest)
        return queued(
            jobs,
            lambda: training.add_from_collection(jobs, runtime.catalog, runtime.settings, model, wanted, asked),
        )

    return await runtime.writes.run(work)


async def _on_file(request: Request, runtime: Runtime, model: str, key: str | None) -> Response:
    options = _options(request)
    jobs, limit = runtime.jobs, runtime.settings.max_training_bytes
    digest = hashlib.sha256()

    def asked() -> Asked | None:
        return Asked.of(key, "train on a file", model, options.model_dump_json(), digest.digest())

    if key is not None and await runtime.reads.run(jobs.known, key):  # whatever else would refuse it by now
        async for chunk in chunks(request, limit):
            digest.update(chunk)
        return await runtime.reads.run(queued, jobs, lambda: _done_before(jobs, asked()))
    runtime.catalog.check_unused(model)
    stack = ExitStack()
    try:
        draft = await runtime.writes.run(lambda: stack.enter_context(runtime.jobs.draft(training.KIND)))
        await save_file(request, limit, draft.directory / UPLOAD, None if key is None else digest.update)

        def add() -> JobRecord:
            return training.add_from_file(jobs, runtime.catalog, runtime.settings, model, draft, options, asked())

        return await runtime.writes.run(queued, jobs, add)
    finally:
        await to_thread.run_sync(stack.close)


def _done_before(jobs: Jobs, asked: Asked | None) -> JobRecord:
    """Raise that a job was queued before; StorageError if its reply was forgotten this very moment."""
    jobs.check(asked)
    raise StorageBusyError("the reply that was kept is gone: ask again")


def _options(request: Request) -> TrainingOptions:
    """Options from the query."""
    try:
        return validated(from_query(request.query_params), TrainingOptions)
    except InvalidRequestError as error:
        faults = [replace(fault, pointer=f"?{fault.pointer.removeprefix('#/')}") for fault in error.faults]
        raise InvalidRequestError.from_faults(faults) from None
