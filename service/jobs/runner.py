"""Background jobs: added, run one at a time in a thread of their own, cancelled, and run again after a restart."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from ccq_core.errors import CCQError
from service import metrics
from service.errors import JobFailedError, ServiceError, UnavailableError
from service.jobs.folders import Folders
from service.jobs.kind import Cancelled, Interrupted, JobKind
from service.jobs.progress import Progress
from service.jobs.queue import JobQueue, now
from service.problems import INTERNAL, kind_of
from service.settings import Settings
from service.store.interface import Once
from service.store.jobrecords import JobRecord, JobStore, State
from service.writing import Asked

log = logging.getLogger(__name__)

MOST_DEATHS = 3
_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 5.0


@dataclass(frozen=True)
class Draft:
    """A job that is about to be added: its id, and its directory, where a request may put what the job needs."""

    id: str
    kind: str
    directory: Path


class Jobs:
    """The jobs of a data directory that is in use.

    Parameters
    ----------
    store:
        Where they are kept.
    settings:
        Where their directories are, and how many there may be.
    kinds:
        What can be done.
    """

    def __init__(self, store: JobStore, settings: Settings, kinds: Iterable[JobKind]) -> None:
        self._store = store
        self._queue = JobQueue(store, settings.max_jobs, settings.jobs_keep)
        self._folders = Folders(settings.data)
        self._kinds = {kind.kind: kind for kind in kinds}
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._running: _Running | None = None
        self._thread: threading.Thread | None = None

    @property
    def kinds(self) -> list[str]:
        """Names of the kinds that there are."""
        return list(self._kinds)

    def start(self) -> None:
        """Begin working on what is queued."""
        self._wake.set()
        self._thread = threading.Thread(target=self._work, name="ccq-jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Interrupt the job that is running; it is run again at the next start. Waits for it, but not for long."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)
        if self._running is not None and self._thread is not None and self._thread.is_alive():
            log.warning("job %s does not stop; it is left behind", self._running.id)
            self._interrupt(self._running.id)

    # -- for requests ----------------------------------------------------------------------------------------------

    def all(self) -> list[JobRecord]:
        """All jobs, from the oldest to the newest."""
        return self._queue.all()

    def get(self, job: str) -> JobRecord:
        """One; UnknownJobError if there is none of this id."""
        return self._queue.get(job)

    def described(self, record: JobRecord) -> dict[str, Any]:
        """A job as `service.schemas.jobs.JobInfo`."""
        running = self._running
        live = running is not None and running.id == record.id and record.state == "running"
        return {
            "id": record.id,
            "kind": record.kind,
            "target": record.target,
            "parameters": record.parameters,
            "state": record.state,
            "cancelling": record.cancelling,
            "created": record.created,
            "started": record.started,
            "ended": record.ended,
            "attempts": record.attempts,
            "progress": running.told if live and running is not None else record.progress,
            "result": record.result,
            "error": record.error,
        }

    @contextmanager
    def draft(self, kind: str) -> Iterator[Draft]:
        """A job that is about to be added. If it is not, nothing is left of it.

        Raises
        ------
        JobsFullError
            As many are queued or running as may.
        """
        job = self._queue.draft(kind)
        try:
            yield Draft(job, kind, self._folders.of(job))
        finally:
            self._queue.give_up(job)
            if all(known.id != job for known in self._queue.all()):
                self._folders.remove(job)

    def check(self, asked: Asked | None) -> None:
        """Return if this was not asked for before.

        Raises
        ------
        DoneBefore, KeyReusedError
            It was; or its key was that of something else.
        """
        if asked is not None:
            self._store.check(Once(asked.key, asked.digest, lambda _: b""))

    def known(self, key: str) -> bool:
        """Whether some job was asked for with this Idempotency-Key."""
        return self._store.known(key)

    def add(self, draft: Draft, target: str, parameters: Mapping[str, Any], asked: Asked | None = None) -> JobRecord:
        """Queue a job; durable on return. `target`, `parameters`: see `service.jobs.kind.Context`.

        With `asked` only once; raises what `check` raises.
        """

        def once(record: JobRecord) -> Once | None:
            if asked is None:
                return None
            return Once(asked.key, asked.digest, lambda _: orjson.dumps(self.described(record)))

        record = self._queue.add(draft.id, draft.kind, target, parameters, once)
        self._wake.set()
        return record

    def cancel(self, job: str, *, forget: bool = True) -> JobRecord | None:
        """End a job as soon as possible: the job as it is now. One that had ended is forgotten if so, then None.

        Raises
        ------
        UnknownJobError
        StorageFullError, StorageBusyError, StorageError
            Nothing was changed.
        """
        if forget and self._queue.get(job).finished:
            self._queue.remove(job)
            return None

        def change(record: JobRecord) -> JobRecord:
            if record.state == "queued":
                return replace(record, state="cancelled", ended=now())
            return record if record.finished else replace(record, cancelling=True)

        record = self._queue.change(job, change)
        if record.state == "cancelled":
            self._folders.remove(job)
        return record

    # -- the thread ------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        self._folders.keep([job.id for job in self.all() if not job.finished])
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            while not self._stopping.is_set() and (job := self._queue.next()) is not None:
                try:
                    self._run(job)
                except Exception:
                    log.exception("job %s: could not be begun", job.id)
                    self._stopping.wait(_PAUSE_SECONDS)  # the disk may be full: neither give up, nor fill the log
                self._running = None

    def _run(self, job: JobRecord) -> None:
        if job.cancelling:  # when its server died
            self._end(job.id, "cancelled")
            return
        if job.deaths >= MOST_DEATHS:
            died = f"the server died {job.deaths} times while it ran; it is not tried again"
            self._end(job.id, "failed", error=_told(JobFailedError(died)))
            return
        self._running = _Running(job, self._folders.of(job.id), self._queue, self._stopping)

        def begin(record: JobRecord) -> JobRecord:
            if record.state != "queued":  # cancelled meanwhile
                return record
            return replace(record, state="running", started=now(), attempts=record.attempts + 1)

        if self._queue.change(job.id, begin).state != "running":
            self._folders.remove(job.id)
            return
        log.info("job %s: %s", job.id, "resumed" if job.attempts else "begun")
        began = time.monotonic()
        try:
            result = self._kind(job.kind).run(self._running)
        except Interrupted:
            self._interrupt(job.id)
            log.info("job %s: interrupted", job.id)
            return
        except Cancelled:
            state = self._end(job.id, "cancelled")
        except (ServiceError, CCQError) as error:
            if kind_of(error) is INTERNAL or error.__cause__ is not None:
                log.error("job %s: %s", job.id, error, exc_info=error)  # noqa: TRY400 (not always with a traceback)
            state = self._end(job.id, "failed", error=_told(error))
        except Exception as error:
            log.exception("job %s failed", job.id)
            state = self._end(job.id, "failed", error=_told(error))
        else:
            state = self._end(job.id, "done", result=result)
        took = time.monotonic() - began
        log.info("job %s: %s after %.1f s", job.id, state, took)
        metrics.job_ended(job.kind, state, took)

    def _kind(self, name: str) -> JobKind:
        if name not in self._kinds:
            raise JobFailedError(f"expected a job of kind {' or '.join(self._kinds) or 'none'}, got {name!r}")
        return self._kinds[name]

    def _end(self, job: str, state: State, **what: Any) -> State:
        """A job has ended in this state."""
        told = None if self._running is None else self._running.told

        def change(record: JobRecord) -> JobRecord:
            if record.finished or (self._running is not None and record.state != "running"):
                return record  # left behind by `close`: it belongs to the next server
            return replace(record, state=state, ended=now(), progress=told, cancelling=False, **what)

        try:
            ended = self._queue.change(job, change).finished
        except UnavailableError as error:  # the store still has it as running: the next server does it again
            log.error("job %s: %s, which could not be stored: %s", job, state, error)  # noqa: TRY400
            self._queue.set(change(self._queue.get(job)))
            return state
        if ended:
            self._folders.remove(job)
        return state

    def _interrupt(self, job: str) -> None:
        """A job is to be run again by the next server, which did not die of it."""

        def change(record: JobRecord) -> JobRecord:
            return replace(record, state="queued", started=None) if record.state == "running" else record

        try:
            self._queue.change(job, change)
        except UnavailableError as error:
            log.error("job %s: its interruption could not be stored: %s", job, error)  # noqa: TRY400


class _Running:
    """The job that is running: its `service.jobs.kind.Context`."""

    def __init__(self, job: JobRecord, directory: Path, queue: JobQueue, stopping: threading.Event) -> None:
        self.id = job.id
        self.target = job.target
        self.parameters = job.parameters
        self.directory = directory
        self._queue = queue
        self._stopping = stopping
        self._progress = Progress()

    @property
    def told(self) -> dict[str, Any] | None:
        """How far it is."""
        return self._progress.told

    def progress(self, phase: str, done: int, total: int | None = None, **extra: Any) -> None:
        """See `Context`."""
        self._progress.tell(phase, done, total, extra)
        self.check()

    def check(self) -> None:
        """See `Context`."""
        if self._queue.get(self.id).cancelling:
            raise Cancelled
        if self._stopping.is_set():
            raise Interrupted


def _told(error: Exception) -> dict[str, Any]:
    """An error as `service.schemas.jobs.JobError`."""
    kind = kind_of(error)
    return {
        "code": kind.code,
        "detail": "an unexpected error; the server's log has it" if kind is INTERNAL else str(error),
    }
