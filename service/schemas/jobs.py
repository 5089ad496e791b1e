"""Replies about jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from service.schemas.base import Schema
from service.store.jobrecords import State


class JobProgress(Schema):
    """How far a job is. A kind of job may tell more."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    phase: str = Field(description="What is being done.")
    done: int = Field(description="How many steps of this phase are done.")
    total: int | None = Field(description="How many there are, if that is known.")
    fraction: float | None = Field(description="The share of them that is done, from 0 to 1.")
    seconds_left: float | None = Field(
        description="About how long the phase will still take; null until that is known."
    )


class JobError(Schema):
    """Why a job failed."""

    code: str = Field(description="That of the problem that a request would have got.")
    detail: str = Field(description="For people; may change.")


class JobInfo(Schema):
    """Work in the background."""

    id: str
    kind: Literal["train", "reencode"]
    target: str = Field(description="Name of the model or collection that it is about.")
    parameters: dict[str, Any] = Field(description="What was asked for.")
    state: State
    cancelling: bool = Field(description="It is running, and will be cancelled as soon as it can be.")
    created: str = Field(description="When it was queued (ISO 8601, UTC).")
    started: str | None = Field(description="When its last attempt began.")
    ended: str | None
    attempts: int = Field(description="How often it was begun: anew after each stop of the server.")
    progress: JobProgress | None = Field(description="How far it is, or was when it ended.")
    result: dict[str, Any] | None = Field(description="What it gave, once it is `done`.")
    error: JobError | None = Field(description="Why it `failed`.")


class JobList(Schema):
    """Jobs, the newest first."""

    jobs: list[JobInfo]
