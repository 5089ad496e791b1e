"""Background jobs, whatever their kind: what becomes of them, also when the server stops or dies."""

import threading
import time

import pytest

from service import errors
from service.jobs.progress import Progress
from service.jobs.runner import Jobs
from service.restore import restore
from service.schemas.jobs import JobInfo, JobList
from service.settings import Settings
from service.store.connection import open_writer
from service.store.reading import DATABASE_NAME
from service.store.sqlite import SQLiteStore
from tests.service.harness import InProcess, assert_problem
from tests.service.older import go_back


class Steps:
    """A kind of job that takes a step whenever it is let; `kind` is one that the schemas know."""

    kind = "train"

    def __init__(self):
        self.ran = []
        self.begun = threading.Event()
        self.go = threading.Event()
        self.deaf = False

    def run(self, context):
        self.ran.append(context.parameters.get("name"))
        (context.directory / f"attempt-{len(list(context.directory.iterdir()))}").touch()
        context.progress("first", 1, 4, colour="red")
        self.begun.set()
        while not self.go.wait(0.005):
            if not self.deaf:
                context.check()
        context.progress("last", 3, 3)
        if "fails" in context.parameters:
            raise context.parameters["fails"]
        return {"attempts": sorted(file.name for file in context.directory.iterdir()), "target": context.target}


class Server:
    """A store and its jobs, as a server holds them."""

    def __init__(self, data, kind=None, **settings):
        self.kind = kind or Steps()
        self.store = SQLiteStore(data)
        self.jobs = Jobs(self.store.jobs, Settings(data=data, **settings), [self.kind])
        self.jobs.start()

    def add(self, **parameters):
        with self.jobs.draft(self.kind.kind) as draft:
            return self.jobs.add(draft, "thing", parameters).id

    def state(self, job):
        return self.jobs.get(job).state

    def wait(self, job):
        until(lambda: self.jobs.get(job).finished)
        return self.jobs.get(job)

    def die(self):
        """End as a server that is killed, as far as its data directory can tell."""
        self.jobs._queue._store = None  # whatever becomes of its jobs, the store does not hear of it
        self.kind.go.set()
        self.jobs._stopping.set()
        self.jobs._wake.set()
        self.jobs._thread.join()  # or it would complain in the log of another test
        self.store.close()

    def stop(self):
        self.jobs.close()
        self.store.close()


def until(true):
    ends = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends, "not in time"
        time.sleep(0.002)


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def server(data):
    server = Server(data, max_jobs=3, jobs_keep=2)
    yield server
    server.stop()


def test_a_job_from_its_beginning_to_its_end(server):
    job = server.add(name="a")
    server.kind.begun.wait()
    assert server.state(job) == "running"
    live = server.jobs.described(server.jobs.get(job))
    JobInfo.model_validate(live)
    assert live["progress"] == {
        "phase": "first", "done": 1, "total": 4, "fraction": 0.25, "seconds_left": None, "colour": "red"
    }  # fmt: skip
    assert (live["attempts"], live["ended"], live["result"]) == (1, None, None)
    server.kind.go.set()
    done = server.wait(job)
    assert (done.state, done.error) == ("done", None)
    assert done.result == {"attempts": ["attempt-0"], "target": "thing"}
    assert done.created <= done.started <= done.ended
    assert server.jobs.described(done)["progress"]["phase"] == "last"
    until(lambda: not list((server.jobs._folders._root).iterdir()))


def test_one_runs_at_a_time_the_oldest_first(server):
    jobs = [server.add(name=name) for name in "abc"]
    server.kind.begun.wait()
    assert [server.state(job) for job in jobs] == ["running", "queued", "queued"]
    server.kind.go.set()
    server.wait(jobs[-1])
    assert server.kind.ran == ["a", "b", "c"]


def test_there_are_only_so_many_and_those_that_ended_are_forgotten(server):
    jobs = [server.add() for _ in range(3)]
    with pytest.raises(errors.JobsFullError, match="at most 3 jobs"):
        server.add()
    server.jobs.cancel(jobs[1])
    with server.jobs.draft("train") as draft:  # counts as one that waits
        assert draft.directory.is_dir()
        with pytest.raises(errors.JobsFullError):
            server.add()
    assert not draft.directory.exists()
    jobs.append(server.add())
    server.kind.go.set()
    server.wait(jobs[-1])
    assert [job.id for job in server.jobs.all()] == [jobs[2], jobs[3]]
    assert [job.id for job in server.store.jobs.all()] == [jobs[2], jobs[3]]


def test_cancel_one_that_is_queued_and_one_that_is_running(server):
    running, queued = server.add(name="a"), server.add(name="b")
    server.kind.begun.wait()
    assert server.jobs.cancel(queued).state == "cancelled"
    now = server.jobs.cancel(running)
    assert (now.state, now.cancelling) == ("running", True)
    ended = server.wait(running)
    assert (ended.state, ended.cancelling, ended.result) == ("cancelled", False, None)
    assert server.kind.ran == ["a"]
    assert server.jobs.cancel(running) is None
    with pytest.raises(errors.UnknownJobError):
        server.jobs.get(running)
    with pytest.raises(KeyError):
        server.jobs.cancel(running)
    assert [job.id for job in server.store.jobs.all()] == [queued]


@pytest.mark.parametrize(
    ("error", "code", "detail"),
    [
        (errors.ModelInUseError("it is used"), "model_in_use", "it is used"),
        (errors.StorageFullError("no room"), "storage_full", "no room"),
        (ZeroDivisionError("secret"), "internal_error", "an unexpected error; the server's log has it"),
        (MemoryError(), "internal_error", "an unexpected error; the server's log has it"),
    ],
)
def test_a_job_that_fails_says_why_and_the_next_is_run(server, error, code, detail, monkeypatch):
    original = Steps.run
    monkeypatch.setattr(server.kind, "run", lambda context: (_ for _ in ()).throw(error))
    failed = server.wait(server.add())
    assert (failed.state, failed.error) == ("failed", {"code": code, "detail": detail})
    monkeypatch.setattr(server.kind, "run", lambda context: original(server.kind, context))
    server.kind.go.set()
    assert server.wait(server.add()).state == "done"


def test_a_server_that_stops_interrupts_its_job_and_the_next_goes_on(data):
    first = Server(data)
    running, queued = first.add(name="a"), first.add(name="b")
    first.kind.begun.wait()
    began = time.monotonic()
    first.stop()
    assert time.monotonic() - began < 2
    second = Server(data)
    second.kind.go.set()
    assert second.wait(queued).state == "done"
    done = second.jobs.get(running)
    assert done.result["attempts"] == ["attempt-0", "attempt-1"]
    assert (done.attempts, done.deaths) == (2, 0)
    second.stop()


def test_a_job_that_does_not_stop_is_left_behind(data, monkeypatch):
    monkeypatch.setattr("service.jobs.runner._PATIENCE_SECONDS", 0.05)
    first = Server(data)
    first.kind.deaf = True
    job = first.add()
    first.kind.begun.wait()
    first.stop()
    first.kind.go.set()
    first.jobs._thread.join()
    second = Server(data)
    second.kind.go.set()
    done = second.wait(job)
    assert (done.state, done.attempts, done.deaths) == ("done", 2, 0)
    assert done.result["attempts"] == ["attempt-0", "attempt-1"]
    second.stop()


def test_a_job_under_which_three_servers_died_is_not_tried_again(data):
    server = Server(data)
    poison = server.add(name="poison")
    later = server.add(name="later")
    for attempt in range(3):
        assert server.kind.begun.wait(20)
        assert server.jobs.get(poison).attempts == attempt + 1
        server.die()
        server = Server(data)
    failed = server.wait(poison)
    assert (failed.state, failed.attempts) == ("failed", 3)
    assert failed.error == {
        "code": "job_failed", "detail": "the server died 3 times while it ran; it is not tried again"
    }  # fmt: skip
    server.kind.go.set()
    assert server.wait(later).state == "done"
    assert server.kind.ran == ["later"]
    server.stop()


def test_a_job_that_was_being_cancelled_when_the_server_died_is_cancelled(data):
    first = Server(data)
    first.kind.deaf = True
    job = first.add()
    first.kind.begun.wait()
    assert first.jobs.cancel(job).cancelling
    first.die()
    second = Server(data)
    assert second.wait(job).state == "cancelled"
    assert second.kind.ran == []
    second.stop()


def test_what_is_left_of_a_request_that_a_crash_cut_short_is_removed(data):
    left = data / "jobs" / "train-20200101T000000-abcd"
    left.mkdir(parents=True)
    (left / "upload.npz").write_bytes(b"x" * 100)
    server = Server(data)
    until(lambda: not left.exists())
    server.stop()


def test_a_job_of_a_kind_that_this_version_does_not_know(data):
    first = Server(data)
    first.kind.kind = "other"
    job = first.add()
    failed = first.wait(job)
    assert failed.error["code"] == "job_failed"
    assert "expected a job of kind train, got 'other'" in failed.error["detail"]
    first.stop()


def test_a_data_directory_of_before_there_were_jobs(data):
    store = SQLiteStore(data)
    store.close()
    connection = open_writer(data / DATABASE_NAME, existing=True)
    go_back(connection, 4)
    connection.close()
    server = Server(data)
    server.kind.go.set()
    assert server.wait(server.add()).state == "done"
    server.stop()


def test_how_long_it_will_still_take_is_measured_within_a_phase():
    time = [100.0]
    progress = Progress(lambda: time[0])

    def left(phase, done, total):
        progress.tell(phase, done, total, {})
        return progress.told["seconds_left"]

    assert left("a", 10, 30) is None  # what an attempt before had done tells nothing of the speed
    time[0] += 4
    assert left("a", 12, 30) == 36.0
    time[0] += 1
    assert left("b", 0, 2) is None
    time[0] += 3
    assert left("b", 1, 2) == 3.0
    assert left("b", 5, 2) == 0.0
    assert progress.told["fraction"] == 1.0
    assert left("c", 5, None) is None
    assert progress.told["fraction"] is None


# -- over HTTP -------------------------------------------------------------------------------------------------------


@pytest.fixture
def steps(bare):
    steps = Steps()
    bare.app.state.runtime.jobs._kinds["train"] = steps
    return steps


def add(service, **parameters):
    jobs = service.app.state.runtime.jobs
    with jobs.draft("train") as draft:
        return jobs.add(draft, "thing", parameters).id


def test_jobs_are_listed_shown_cancelled_and_forgotten(bare, steps):
    assert bare.ok("GET", "/jobs") == {"jobs": []}
    first, second, third = (add(bare, name=name) for name in "abc")
    steps.begun.wait()
    listed = bare.ok("GET", "/jobs")
    JobList.model_validate(listed)
    assert [(job["id"], job["state"]) for job in listed["jobs"]] == [
        (third, "queued"), (second, "queued"), (first, "running")
    ]  # fmt: skip
    assert [job["id"] for job in bare.ok("GET", "/jobs?state=queued&kind=train")["jobs"]] == [third, second]
    assert bare.ok("GET", "/jobs?kind=other") == {"jobs": []}
    assert bare.ok("GET", f"/jobs/{first}")["progress"]["done"] == 1
    cancelled = bare.delete(f"/jobs/{second}")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    cancelling = bare.delete(f"/jobs/{first}")
    assert cancelling.status_code == 202
    until(lambda: bare.ok("GET", f"/jobs/{first}")["state"] == "cancelled")
    steps.go.set()
    until(lambda: bare.ok("GET", f"/jobs/{third}")["state"] == "done")
    assert bare.delete(f"/jobs/{third}").status_code == 204
    assert_problem(bare.get(f"/jobs/{third}"), 404, "job_not_found")
    assert_problem(bare.delete(f"/jobs/{third}"), 404, "job_not_found")
    assert_problem(bare.get("/jobs?state=ready"), 422, "invalid_request")
    assert_problem(bare.get("/jobs/a%20b"), 422, "invalid_request")
    metrics = bare.get("/metrics").text
    assert 'ccq_jobs{kind="train",state="cancelled"} 2.0' in metrics
    assert 'ccq_job_seconds_count{kind="train",state="done"}' in metrics


def test_a_snapshot_has_the_jobs_that_had_ended(bare, steps, tmp_path):
    steps.go.set()
    done = add(bare)
    until(lambda: bare.ok("GET", f"/jobs/{done}")["state"] == "done")
    steps.go.clear()
    steps.begun.clear()
    add(bare), add(bare)
    assert steps.begun.wait(20)
    made = bare.ok("POST", "/snapshots")
    steps.go.set()
    restore(bare.settings.data / "snapshots" / f"{made['name']}.tar", tmp_path / "copy")
    copy = InProcess(tmp_path / "copy")
    assert [job["id"] for job in copy.ok("GET", "/jobs")["jobs"]] == [done]
    copy.close()


def test_a_server_with_a_job_is_ready_and_stops_at_once(bare, steps):
    add(bare)
    steps.begun.wait()
    assert bare.get("/readyz").status_code == 200
    began = time.monotonic()
    bare.restart()
    assert time.monotonic() - began < 3
