"""Idempotency-Key where jobs are queued: the same request again queues nothing, and gets the job of the first time."""

import threading

import httpx
import pytest

from service.restore import restore
from tests.service.harness import InProcess, ServerProcess, assert_problem
from tests.service.test_training import FILE, LONG, PAIRS, QUICK, npz, photos, wait  # noqa: F401 (a fixture)


def post(client, model, body, key="k", **options):
    """Ask for a training with a key: on a collection by JSON, or on a file."""
    once = {"Idempotency-Key": key}
    if isinstance(body, dict):
        return client.request("POST", f"/models/{model}/train", json={**body, **options}, headers=once)
    return client.request("POST", f"/models/{model}/train", content=body, params=options, headers={**FILE, **once})


def reencode(client, model, key="k"):
    headers = {"Idempotency-Key": key}
    return client.request("POST", "/collections/photos/reencode", json={"model": model}, headers=headers)


def jobs(client):
    return client.request("GET", "/jobs").json()["jobs"]


def assert_the_same(first, again):
    assert (first.status_code, again.status_code) == (202, 202), again.text
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.content == first.content
    assert again.headers["location"] == first.headers["location"] == f"/jobs/{first.json()['id']}"


@pytest.mark.parametrize("body", [{"collection": "photos"}, npz()], ids=["collection", "file"])
def test_a_training_is_queued_once(photos, body):  # noqa: F811
    first = post(photos, "new", body, **QUICK)
    assert_the_same(first, post(photos, "new", body, **QUICK))
    assert wait(photos, first.json()["id"])["state"] == "done"
    photos.restart()
    photos.put("/collections/other", {"model": "new"})  # now its name is taken: a new training would be refused
    assert_the_same(first, post(photos, "new", body, **QUICK))
    assert len(jobs(photos)) == 1
    assert_problem(post(photos, "new", body, key="another", **QUICK), 409, "model_in_use")
    other = {**body, "seed": 1} if isinstance(body, dict) else npz({"text": PAIRS["text"]})
    for reused in (post(photos, "new", other, **QUICK), post(photos, "new", body, **{**QUICK, "bits": 8})):
        assert_problem(reused, 422, "idempotency_key_reused")
    assert_problem(post(photos, "newer", body, **QUICK), 422, "idempotency_key_reused")
    assert len(jobs(photos)) == 1


def test_what_was_refused_has_not_used_its_key(photos):  # noqa: F811
    assert_problem(post(photos, "new", {"collection": "plain"}), 422, "invalid_request")
    assert_problem(post(photos, "new", b"no file"), 422, "invalid_request")
    assert post(photos, "new", npz(), **QUICK).status_code == 202


def test_a_full_queue_still_knows_its_jobs(tmp_path):
    service = InProcess(tmp_path / "data", max_jobs=1)
    try:
        first = post(service, "new", npz(), **LONG)
        assert_the_same(first, post(service, "new", npz(), **LONG))
        assert_problem(post(service, "new", npz(), key="another", **LONG), 409, "jobs_full")
        assert service.request("DELETE", f"/jobs/{first.json()['id']}").status_code == 202
    finally:
        service.close()


def test_an_encoding_anew_is_queued_once(photos):  # noqa: F811
    wait(photos, post(photos, "new", {"collection": "photos"}, **QUICK).json()["id"])
    first = reencode(photos, "new", key="r")
    assert first.status_code == 202, first.text
    assert wait(photos, first.json()["id"])["state"] == "done"
    assert_the_same(first, reencode(photos, "new", key="r"))
    assert_problem(reencode(photos, "new", key="another"), 422, "cannot_reencode")
    assert_problem(reencode(photos, "new"), 422, "idempotency_key_reused")  # the key of the training
    assert len(jobs(photos)) == 2


def test_at_one_moment_one_is_queued(tmp_path):
    server = ServerProcess(tmp_path / "data")
    server.wait_until_ready()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            replies = []
            ask = lambda: replies.append(post(client, "new", npz(), **LONG))  # noqa: E731
            threads = [threading.Thread(target=ask) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert {reply.status_code for reply in replies} == {202}
            assert len({reply.json()["id"] for reply in replies}) == 1
            assert sum("idempotency-replayed" not in reply.headers for reply in replies) == 1
            assert len(jobs(client)) == 1
            assert len(list((tmp_path / "data" / "jobs").iterdir())) == 1
            client.delete(f"/jobs/{replies[0].json()['id']}")
    finally:
        server.kill()


def test_a_snapshot_does_not_promise_jobs_that_are_not_in_it(photos, tmp_path):  # noqa: F811
    done = post(photos, "new", {"collection": "photos"}, key="done", **QUICK)
    wait(photos, done.json()["id"])
    running = post(photos, "newer", npz(), key="running", **LONG)
    name = photos.request("POST", "/snapshots").json()["name"]
    (tmp_path / "s").write_bytes(photos.request("GET", f"/snapshots/{name}").content)
    photos.request("DELETE", f"/jobs/{running.json()['id']}")
    restore(tmp_path / "s", tmp_path / "copy")
    copy = InProcess(tmp_path / "copy")
    try:
        assert_the_same(done, post(copy, "new", {"collection": "photos"}, key="done", **QUICK))
        again = post(copy, "newer", npz(), key="running", **LONG)
        assert (again.status_code, "idempotency-replayed" in again.headers) == (202, False)
        assert copy.request("DELETE", f"/jobs/{again.json()['id']}").status_code == 202
    finally:
        copy.close()


def test_a_job_that_has_ended_is_forgotten_or_not(photos):  # noqa: F811
    job = post(photos, "new", {"collection": "photos"}, **QUICK).json()["id"]
    wait(photos, job)
    kept = photos.request("DELETE", f"/jobs/{job}?forget=false")
    assert (kept.status_code, kept.json()["state"]) == (202, "done")
    assert photos.request("DELETE", f"/jobs/{job}").status_code == 204
    assert photos.request("DELETE", f"/jobs/{job}?forget=false").status_code == 404
