"""Routes that act on snapshots."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import FileResponse, Response

from service import errors
from service.responses import Json
from service.routes.common import STORE_PROBLEMS, WRITE_PROBLEMS, RuntimeArg
from service.routes.guard import CallerArg, guarded, needs
from service.schemas.names import SnapshotPath
from service.schemas.snapshots import SnapshotInfo, SnapshotList
from service.snapshots import SUFFIX

router = APIRouter(prefix="/snapshots", tags=["snapshots"])

FILE_TYPE = "application/x-tar"
NAMED_PROBLEMS = (errors.UnknownSnapshotError, errors.InvalidRequestError)


@router.post(
    "",
    dependencies=[needs("admin")],
    status_code=201,
    response_model=SnapshotInfo,
    responses=guarded(errors.SnapshotInProgressError, *WRITE_PROBLEMS),
)
async def post(runtime: RuntimeArg, caller: CallerArg) -> Response:
    """Make a snapshot: everything that the server holds but its keys, at one moment, in one file on its disk.

    Meanwhile it serves and writes. One that takes longer than a request may goes on, and is listed once it is complete.
    Not with an API key for some collections only.
    """
    caller.check_unlimited()
    return await runtime.commits.run(lambda: Json(runtime.snapshots.make().described(), status_code=201))


@router.get("", dependencies=[needs("admin")], response_model=SnapshotList, responses=guarded())
async def list_(runtime: RuntimeArg, caller: CallerArg) -> Response:
    """All snapshots, the oldest first. Not with an API key for some collections only."""
    caller.check_unlimited()
    return await runtime.reads.run(
        lambda: Json({"snapshots": [snapshot.described() for snapshot in runtime.snapshots.all()]})
    )


@router.get(
    "/{snapshot}",
    dependencies=[needs("admin")],
    response_class=FileResponse,
    responses=guarded(*NAMED_PROBLEMS, errors.StorageError)
    | {200: {"content": {FILE_TYPE: {"schema": {"type": "string", "format": "binary"}}}, "description": "The file."}},
)
async def get(runtime: RuntimeArg, caller: CallerArg, snapshot: SnapshotPath) -> Response:
    """The file of a snapshot, or a range of it. Not with an API key for some collections only."""
    caller.check_unlimited()
    found = await runtime.reads.run(runtime.snapshots.get, snapshot)
    headers = {"ETag": f'"{found.manifest.checksum}"'}
    return FileResponse(found.file, headers=headers, media_type=FILE_TYPE, filename=found.name + SUFFIX)


@router.delete(
    "/{snapshot}",
    dependencies=[needs("admin")],
    status_code=204,
    responses=guarded(*NAMED_PROBLEMS, *STORE_PROBLEMS),
)
async def delete(runtime: RuntimeArg, caller: CallerArg, snapshot: SnapshotPath) -> Response:
    """Delete a snapshot. Not with an API key for some collections only."""
    caller.check_unlimited()
    await runtime.writes.run(runtime.snapshots.delete, snapshot)
    return Response(status_code=204)
