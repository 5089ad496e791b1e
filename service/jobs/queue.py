"""Which jobs there are, and what has become of each: kept in memory, and in the store before anybody is told."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from service.errors import JobsFullError, UnknownJobError
from service.store.interface import Once
from service.store.jobrecords import JobRecord, JobStore


class JobQueue:
    """The jobs of a store, from the oldest to the newest. Any method may be called from any thread.

    Parameters
    ----------
    store:
        Where they are kept. What was running there was interrupted by the death of the server, and is queued again.
    most_waiting:
        How many may be queued or running, drafts among them.
    most_kept:
        How many that have ended are kept; the oldest of more are forgotten.
    """

    def __init__(self, store: JobStore, most_waiting: int, most_kept: int) -> None:
        self._store = store
        self._most_waiting = most_waiting
        self._most_kept = most_kept
        self._jobs = {job.id: _revived(job) for job in store.all()}
        self._drafts: set[str] = set()
        self._changing = threading.RLock()  # held while the store writes: what is told is stored

    def all(self) -> list[JobRecord]:
        """All jobs, from the oldest to the newest."""
        return list(self._jobs.values())

    def get(self, job: str) -> JobRecord:
        """One; UnknownJobError if there is none of this id."""
        found = self._jobs.get(job)
        if found is None:
            raise UnknownJobError(job)
        return found

    def draft(self, kind: str) -> str:
        """The id of a job that is about to be added, which counts as one that waits until it is, or is given up.

        Raises
        ------
        JobsFullError
            As many wait as may.
        """
        with self._changing:
            waiting = len(self._drafts) + sum(not job.finished for job in self._jobs.values())
            if waiting >= self._most_waiting:
                raise JobsFullError(f"expected at most {self._most_waiting} jobs queued or running, got one more")
            job = f"{kind}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
            while job in self._drafts or job in self._jobs:
                job = f"{job[:-4]}{secrets.token_hex(2)}"
            self._drafts.add(job)
            return job

    def give_up(self, draft: str) -> None:
        """A draft will not be added."""
        self._drafts.discard(draft)

    def add(
        self,
        draft: str,
        kind: str,
        target: str,
        parameters: Mapping[str, Any],
        once: Callable[[JobRecord], Once | None] = lambda _: None,
    ) -> JobRecord:
        """Make a job of a draft; durable on return. `once` says of the job whether it is to be added once."""
        with self._changing:
            record = JobRecord(draft, kind, target, parameters, created=now())
            self._save(record, once(record))
            self._drafts.discard(draft)
            return record

    def next(self) -> JobRecord | None:
        """The oldest job that is queued."""
        return next((job for job in self.all() if job.state == "queued"), None)

    def change(self, job: str, change: Callable[[JobRecord], JobRecord]) -> JobRecord:
        """Change a job, in one step as others see it; durable on return. UnknownJobError if there is none."""
        with self._changing:
            before = self.get(job)
            after = change(before)
            if after != before:
                self._save(after)
            return after

    def set(self, record: JobRecord) -> None:
        """Change a job in memory alone: where the store fails, what is told is still right until a restart."""
        with self._changing:
            self._jobs[record.id] = record

    def remove(self, job: str) -> None:
        """Forget a job; UnknownJobError if there is none."""
        with self._changing:
            self.get(job)
            self._store.delete(job)
            del self._jobs[job]

    def _save(self, record: JobRecord, once: Once | None = None) -> None:
        ended = [job.id for job in self._jobs.values() if job.finished and job.id != record.id]
        gone = ended[: max(len(ended) + record.finished - self._most_kept, 0)]
        self._store.save(record, gone, once)
        self._jobs[record.id] = record
        for job in gone:
            del self._jobs[job]


def now() -> str:
    """The time as jobs have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _revived(job: JobRecord) -> JobRecord:
    """A job as it is after a start."""
    return replace(job, state="queued", deaths=job.deaths + 1) if job.state == "running" else job
