"""The verbs on background jobs."""

from __future__ import annotations

from collections.abc import Callable

from ccq_client._async.connection import AsyncConnection
from ccq_client.calls import jobs as calls
from ccq_client.errors import JobError, WaitTimeoutError
from ccq_client.jobs import Job, State, job_reporter

_FIRST_PAUSE = 0.05


class AsyncJobs:
    """All jobs of a service. They need a key with the scope ``admin``, where there are keys."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self, *, kind: str | None = None, state: State | None = None) -> list[Job]:
        """Jobs, the newest first: all, or those of a kind or in a state."""
        return await self._connection.send(calls.list_jobs(kind, state))

    async def get(self, job: str | Job) -> Job:
        """One job as it is now; `JobNotFoundError` if there is none."""
        return await self._connection.send(calls.get_job(_id(job)))

    async def cancel(self, job: str | Job) -> Job:
        """Cancel a job that is queued or running: the job as it is now. One that has ended stays as it is.

        One that is running ends within a moment: `wait` for that.
        """
        return await self._connection.send(calls.cancel_job(_id(job)))

    async def forget(self, job: str | Job) -> None:
        """Forget a job that has ended: it is listed no more. One that has not is cancelled, and not forgotten."""
        await self._connection.send(calls.forget_job(_id(job)))

    async def wait(
        self,
        job: str | Job,
        *,
        seconds: float | None = None,
        poll: float = 1.0,
        progress: bool | Callable[[Job], None] = False,
    ) -> Job:
        """Wait until a job is done: the job as it is then.

        Parameters
        ----------
        job:
            Its id, or the job as it was.
        seconds:
            How long to wait at most; None: as long as it takes.
        poll:
            Seconds between two looks at it at most; the first ones come sooner.
        progress:
            A function that is called with the job after each look, or True for a bar on standard error.

        Raises
        ------
        JobError
            It failed, or was cancelled.
        WaitTimeoutError
            It took longer; it goes on.
        JobNotFoundError
            There is none, or it was forgotten.
        """
        clock = self._connection.retries.clock
        report = job_reporter(progress)
        began, pause = clock.now(), min(_FIRST_PAUSE, poll)
        while True:
            found = await self.get(job)
            report(found)
            if found.state == "done":
                return found
            if found.finished:
                raise JobError(found)
            if seconds is not None and clock.now() - began + pause > seconds:
                raise WaitTimeoutError(f"job {found.id} is {found.state} after {seconds:g} seconds", found)
            await clock.sleep_async(pause)
            pause = min(pause * 1.5, poll)


def _id(job: str | Job) -> str:
    return job.id if isinstance(job, Job) else job
