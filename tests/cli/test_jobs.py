"""`ccq jobs` against a running service."""

import io
import json
from datetime import datetime

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from ccq_cli import jobview
from ccq_cli.main import main

FILE = {"Content-Type": "application/octet-stream"}


def ccq(url, *arguments):
    return CliRunner().invoke(main, ["jobs", *arguments, "--url", url])


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jobview, "POLL_SECONDS", 0.02)


@pytest.fixture
def train(url, files):
    def train(**options):
        out = io.BytesIO()
        np.savez(out, **{name: np.load(files / f"{name}.npy") for name in ("image", "text")})
        reply = httpx.post(f"{url}/models/new/train", content=out.getvalue(), headers=FILE, params=options)
        assert reply.status_code == 202, reply.text
        return reply.json()["id"]

    return train


def test_wait_show_and_list(url, train):
    job = train(bits=16, iterations=3)
    result = ccq(url, "wait", job)
    assert result.exit_code == 0, result.output
    assert f"job {job} (new): done" in result.output
    assert "objects: 270" in result.output
    assert "image -> text" in result.output
    shown = json.loads(ccq(url, "show", job, "--json").output)
    raw = httpx.get(f"{url}/jobs/{job}").json()
    times = ("created", "started", "ended")  # a service writes .000, too
    assert [datetime.fromisoformat(shown.pop(name)) for name in times] == [
        datetime.fromisoformat(raw.pop(name)) for name in times
    ]
    assert shown == raw
    assert job in ccq(url, "list").output
    assert job in [found["id"] for found in json.loads(ccq(url, "list", "--state", "done", "--json").output)["jobs"]]
    assert job not in ccq(url, "list", "--state", "failed").output
    refused = ccq(url, "cancel", job)
    assert (refused.exit_code, f"job {job} has ended: done" in refused.output) == (1, True)


def test_cancel_and_jobs_that_did_not_succeed(url, train):
    running, queued = train(bits=8, iterations=1_000_000), train(bits=8)
    assert "cancelled" in ccq(url, "cancel", queued).output
    while httpx.get(f"{url}/jobs/{running}").json()["progress"] is None:
        pass
    assert running in ccq(url, "list", "--state", "running").output
    assert json.loads(ccq(url, "cancel", running, "--json").output)["cancelling"] is True
    result = ccq(url, "wait", running)
    assert (result.exit_code, "cancelled" in result.output) == (1, True)
    unknown = ccq(url, "show", "../x")
    assert (unknown.exit_code, "expected a name of letters" in unknown.output) == (1, True)


def test_a_job_that_failed_says_why(url):
    reply = httpx.put(f"{url}/collections/kept", json={"model": "m", "keep": "int8"})
    assert reply.status_code == 201
    job = httpx.post(f"{url}/models/new/train", json={"collection": "kept"}).json()["id"]
    result = ccq(url, "wait", job)
    assert result.exit_code == 1
    assert "invalid_request: collection 'kept' has no items to train on" in result.output
    assert httpx.delete(f"{url}/collections/kept").status_code == 204
