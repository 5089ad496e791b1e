"""What routes share that queue a job: the reply, and that a job is queued once however often it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import orjson
from fastapi import Header
from starlette.responses import Response

from service.jobs.runner import Jobs
from service.responses import REPLAYED, written
from service.routes.common import ONCE
from service.schemas.names import MAX_IDEMPOTENCY_KEY
from service.store.interface import DoneBefore
from service.store.jobrecords import JobRecord
from service.writing import Written

QUEUED: dict[int | str, dict[str, Any]] = {
    202: {
        "description": "It is queued.",
        "headers": {
            "Location": {"description": "Path of the job.", "schema": {"type": "string"}},
            REPLAYED: ONCE[200]["headers"][REPLAYED],
        },
    }
}
"""Of the `responses` of such a route."""
JobKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_IDEMPOTENCY_KEY,
        description="Any string that no other request for a job has had for 24 hours. The same request with the same "
        "key queues nothing: it gets the reply of the first time, and the header `Idempotency-Replayed`.",
    ),
]


def queued(jobs: Jobs, add: Callable[[], JobRecord]) -> Response:
    """Queue a job, unless it was before: the response."""
    try:
        reply = Written(orjson.dumps(jobs.described(add())))
    except DoneBefore as before:
        reply = Written(before.reply, replayed=True)
    response = written(reply)
    response.status_code = 202
    response.headers["Location"] = f"/jobs/{orjson.loads(reply.body)['id']}"
    return response
