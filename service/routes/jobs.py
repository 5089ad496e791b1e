"""Routes that act on background jobs, whatever their kind."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from service import errors
from service.responses import Json
from service.routes.common import WRITE_PROBLEMS, RuntimeArg
from service.routes.guard import CallerArg, guarded, needs
from service.schemas.jobs import JobInfo, JobList
from service.schemas.names import JobPath
from service.store.jobrecords import State

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", dependencies=[needs("admin")], response_model=JobList, responses=guarded(errors.InvalidRequestError))
async def list_(
    runtime: RuntimeArg,
    caller: CallerArg,
    kind: Annotated[str | None, Query(description="Only jobs of this kind.")] = None,
    state: Annotated[State | None, Query(description="Only jobs in this state.")] = None,
) -> Response:
    """Jobs, the newest first. Not with an API key for some collections only."""
    caller.check_unlimited()
    found = [job for job in runtime.jobs.all() if kind in (None, job.kind) and state in (None, job.state)]
    return Json({"jobs": [runtime.jobs.described(job) for job in reversed(found)]})


@router.get(
    "/{job}",
    dependencies=[needs("admin")],
    response_model=JobInfo,
    responses=guarded(errors.UnknownJobError, errors.InvalidRequestError),
)
async def get(runtime: RuntimeArg, caller: CallerArg, job: JobPath) -> Response:
    """One job: how far it is, and what it gave. Not with an API key for some collections only."""
    caller.check_unlimited()
    return Json(runtime.jobs.described(runtime.jobs.get(job)))


@router.delete(
    "/{job}",
    dependencies=[needs("admin")],
    status_code=202,
    response_model=JobInfo,
    responses=guarded(errors.UnknownJobError, errors.InvalidRequestError, *WRITE_PROBLEMS)
    | {202: {"description": "It is `cancelled`, or `cancelling`; or it had ended, and stays."}}
    | {204: {"description": "It had ended, and is forgotten."}},
)
async def delete(
    runtime: RuntimeArg,
    caller: CallerArg,
    job: JobPath,
    forget: Annotated[bool, Query(description="Whether to forget a job that has ended.")] = True,
) -> Response:
    """Cancel a job that is queued or running, or forget one that has ended; with `forget=false` that stays as it is.

    One that is running ends within a moment, and is then `cancelled`. Not with an API key for some collections only.
    """
    caller.check_unlimited()
    record = await runtime.writes.run(lambda: runtime.jobs.cancel(job, forget=forget))
    return Response(status_code=204) if record is None else Json(runtime.jobs.described(record), status_code=202)
