"""Encoding a collection anew, as a job."""

import threading
import time

import pytest

from service import reencoding
from service.schemas.jobs import JobInfo
from tests.service.harness import assert_problem
from tests.service.reencoded import N, assert_codes_are_of_the_model, thing

PATH = "/collections/default/reencode"


@pytest.fixture
def service(keeping, small):
    return keeping


@pytest.fixture
def held(monkeypatch):
    """Such jobs stop before each slice until they are let go on."""
    go, original = threading.Event(), reencoding._Reencoding._stage_some

    def stage_some(self, *rest):
        while not go.wait(0.005):
            self.check()
        return original(self, *rest)

    monkeypatch.setattr(reencoding._Reencoding, "_stage_some", stage_some)
    return go


def begin(service, model="other"):
    reply = service.post(PATH, {"model": model})
    assert reply.status_code == 202, reply.text
    assert reply.headers["location"] == f"/jobs/{reply.json()['id']}"
    return reply.json()


def ended(service, job):
    for _ in range(2000):
        info = service.ok("GET", f"/jobs/{job['id']}")
        if info["state"] not in ("queued", "running"):
            return info
        time.sleep(0.005)
    raise AssertionError(f"not ended in time: {info}")


def until_running(service, job):
    while service.ok("GET", f"/jobs/{job['id']}")["state"] != "running":
        time.sleep(0.005)


def test_a_job_is_for_the_collection_that_it_was_queued_for(service, held):
    """Not for one that is made later by its name; and that one can have a job of its own."""
    service.put("/collections/first", {"model": "tiny", "keep": "float16"})
    service.put("/collections/second", {"model": "tiny", "keep": "float16"})
    first = service.post("/collections/first/reencode", {"model": "other"}).json()
    service.ok("POST", "/collections/first/index", {"items": [thing(0)]})
    second = service.post("/collections/second/reencode", {"model": "other"}).json()
    training = service.post("/models/new/train", {"collection": "second", "bits": 8}).json()
    assert service.request("DELETE", "/collections/second").status_code == 204
    service.put("/collections/second", {"model": "tiny", "keep": "float16"})
    service.ok("POST", "/collections/second/index", {"items": [thing(1)]})
    problem = assert_problem(
        service.post("/collections/first/reencode", {"model": "other"}), 409, "reencode_in_progress"
    )
    assert first["id"] in problem["detail"]
    held.set()
    assert ended(service, first)["state"] == "done"
    for job in (second, training):
        done = ended(service, job)
        assert (done["state"], done["error"]["code"]) == ("failed", "collection_not_found")
    assert service.ok("GET", "/collections/second")["model"] == "tiny"


def test_a_collection_by_the_name_of_another_has_jobs_of_its_own(service, held):
    first = begin(service)  # it goes before
    service.put("/collections/second", {"model": "tiny", "keep": "float16"})
    service.post("/collections/second/reencode", {"model": "other"})
    assert service.request("DELETE", "/collections/second").status_code == 204
    service.put("/collections/second", {"model": "tiny", "keep": "float16"})
    service.ok("POST", "/collections/second/index", {"items": [thing(1)]})
    own = service.post("/collections/second/reencode", {"model": "other"})
    assert own.status_code == 202, own.text
    held.set()
    assert [ended(service, job)["state"] for job in (first, own.json())] == ["done", "done"]
    assert service.ok("GET", "/collections/second")["model"] == "other"


def test_a_job_encodes_a_collection_anew(service):
    job = begin(service)
    assert (job["kind"], job["target"]) == ("reencode", "default")
    assert {**job["parameters"], "collection_number": 0} == {"model": "other", "before": "tiny", "collection_number": 0}
    done = ended(service, job)
    JobInfo.model_validate(done)
    assert done["state"] == "done", done
    seconds = done["result"].pop("seconds")
    assert 0 < seconds < 60
    assert done["result"] == {"items": N, "before": "tiny", "after": "other"}
    assert service.ok("GET", "/collections/default")["model"] == "other"
    assert service.ok("GET", "/models/tiny")["collections"] == []
    assert_codes_are_of_the_model(service)
    assert_problem(service.put("/collections/default", {"model": "tiny"}), 409, "collection_conflict")


def test_what_is_refused(service):
    service.put("/collections/plain", {"model": "tiny"})
    problem = assert_problem(service.post(PATH, {"model": "tiny"}), 422, "cannot_reencode")
    assert problem["errors"][0]["pointer"] == "#/model"
    assert_problem(service.post("/collections/plain/reencode", {"model": "other"}), 422, "cannot_reencode")
    problem = assert_problem(service.post(PATH, {"model": "nothing"}), 404, "model_not_found")
    assert problem["errors"][0]["pointer"] == "#/model"
    assert_problem(service.post("/collections/nowhere/reencode", {"model": "other"}), 404, "collection_not_found")
    assert_problem(service.post(PATH, {}), 422, "invalid_request")
    assert service.ok("GET", "/jobs")["jobs"] == []


def test_one_at_a_time_and_cancelled(service, held):
    job = begin(service)
    until_running(service, job)
    problem = assert_problem(service.post(PATH, {"model": "other"}), 409, "reencode_in_progress")
    assert job["id"] in problem["detail"]
    assert_problem(service.delete("/models/other"), 409, "model_in_use")
    assert service.delete(f"/jobs/{job['id']}").status_code == 202
    assert ended(service, job)["state"] == "cancelled"
    assert service.ok("GET", "/collections/default")["model"] == "tiny"
    assert service.delete("/models/other").status_code == 204
    assert_codes_are_of_the_model(service)


def test_it_begins_again_after_a_restart(service, held):
    job = begin(service)
    until_running(service, job)
    service.ok("POST", "/index", {"items": [thing(i) for i in range(200, 220)]})
    service.restart()
    held.set()
    done = ended(service, job)
    assert (done["state"], done["attempts"], done["result"]["items"]) == ("done", 2, N + 20)
    assert_codes_are_of_the_model(service)


def test_a_job_whose_server_died_just_before_it_could_tell_is_done(service):
    job = begin(service)
    ended(service, job)
    version = service.catalog.collection("default").view.version
    queue = service.app.state.runtime.jobs._queue
    with service.app.state.runtime.jobs.draft("reencode") as draft:
        queue.add(draft.id, "reencode", "default", job["parameters"])
    service.restart()
    done = ended(service, {"id": draft.id})
    assert done["state"] == "done"
    assert {**done["result"], "seconds": 0} == {"items": N, "before": "tiny", "after": "other", "seconds": 0}
    assert service.catalog.collection("default").view.version == version


def test_what_goes_wrong_is_told(service, held):
    job = begin(service)
    until_running(service, job)
    service.delete("/collections/default")
    held.set()
    failed = ended(service, job)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "collection_not_found")
