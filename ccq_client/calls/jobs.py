"""Requests about background jobs, and those that begin some."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ccq_client.calls.admin import FILE
from ccq_client.calls.call import Call, named, nothing, to_json
from ccq_client.calls.items import once, root
from ccq_client.jobs import Job, job_of


def list_jobs(kind: str | None, state: str | None) -> Call[list[Job]]:
    """All jobs, or some of them."""
    given = {name: value for name, value in (("kind", kind), ("state", state)) if value is not None}
    path = f"/jobs?{urlencode(given)}" if given else "/jobs"
    return Call("GET", path, lambda data: [job_of(entry) for entry in data["jobs"]])


def get_job(job: str) -> Call[Job]:
    """One job."""
    return Call("GET", f"/jobs/{named(job)}", job_of)


def cancel_job(job: str) -> Call[Job]:
    """Cancel a job; one that has ended stays as it is."""
    return Call("DELETE", f"/jobs/{named(job)}?forget=false", job_of)


def forget_job(job: str) -> Call[None]:
    """Forget a job that has ended, or cancel one that has not."""
    return Call("DELETE", f"/jobs/{named(job)}", nothing)


def train_on_collection(model: str, collection: str, options: Mapping[str, Any], key: str | None) -> Call[Job]:
    """Train a model on what a collection keeps."""
    body = to_json({"collection": collection, **options})
    return Call("POST", f"/models/{named(model)}/train", job_of, body, headers=once(key))


def train_on_file(model: str, file: Path, options: Mapping[str, Any], key: str | None) -> Call[Job]:
    """Train a model on the arrays of an ``.npz`` file."""
    query = urlencode({name: to_json(value).decode() for name, value in options.items()})
    path = f"/models/{named(model)}/train"
    return Call("POST", f"{path}?{query}" if query else path, job_of, file, FILE, once(key))


def reencode(collection: str, model: str, key: str | None) -> Call[Job]:
    """Encode a collection anew."""
    return Call("POST", f"{root(collection)}/reencode", job_of, to_json({"model": model}), headers=once(key))
