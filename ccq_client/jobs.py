"""Background jobs as the client returns them, and how far they are, drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from ccq_client.progress import draw
from ccq_client.results import make, moment

State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is.

    Attributes
    ----------
    phase:
        What is being done.
    done, total:
        How many steps of it are done, and how many there are, if that is known.
    fraction:
        The share of these, from 0 to 1.
    seconds_left:
        About how long the phase will still take; None until that is known.
    extra:
        What else the kind of job tells, as the ``loss`` of a training.
    """

    phase: str
    done: int
    total: int | None
    fraction: float | None
    seconds_left: float | None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobFailure:
    """Why a job failed: `code` is stable, `detail` is for people."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Job:
    """A background job.

    Attributes
    ----------
    kind, target:
        What is done, ``train`` or ``reencode``, and the name of the model or collection that it is about.
    parameters:
        What was asked for.
    cancelling:
        It is running, and will be cancelled as soon as it can be.
    created, started, ended:
        When it was queued, its last attempt began, and it ended.
    attempts:
        How often it was begun.
    progress:
        How far it is, or was when it ended.
    result:
        What it gave, once it is ``done``.
    error:
        Why it ``failed``.
    """

    id: str
    kind: str
    target: str
    parameters: dict[str, Any]
    state: State
    cancelling: bool
    created: datetime
    started: datetime | None
    ended: datetime | None
    attempts: int
    progress: JobProgress | None
    result: dict[str, Any] | None
    error: JobFailure | None

    @property
    def finished(self) -> bool:
        """Whether nothing will be done any more."""
        return self.ended is not None


def job_of(data: Mapping[str, Any]) -> Job:
    """A job of the JSON of a reply."""
    times = {name: data[name] and moment(data[name]) for name in ("created", "started", "ended")}
    progress, error = data["progress"], data["error"]
    return make(
        Job,
        data,
        **times,
        progress=None if progress is None else _progress(progress),
        error=None if error is None else make(JobFailure, error),
    )


def job_reporter(progress: bool | Callable[[Job], None]) -> Callable[[Job], None]:
    """What is called with a job as it is now: the user's function, a line on standard error, or nothing."""
    if callable(progress):
        return progress
    return _show if progress else lambda _: None


def _show(job: Job) -> None:
    now = job.progress
    if now is None or now.total is None or job.finished:
        draw(float(job.state == "done"), f"{f'job {job.id}: {job.state}':<40}", last=job.finished)
    else:
        draw(now.done / max(now.total, 1), f"{f'{now.phase} {now.done:,} of {now.total:,}':<40}")


def _progress(data: Mapping[str, Any]) -> JobProgress:
    known = {field.name for field in fields(JobProgress)}
    return make(JobProgress, data, extra={name: value for name, value in data.items() if name not in known})
