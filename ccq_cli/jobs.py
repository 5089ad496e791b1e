"""`ccq jobs`."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import quote

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ccq_cli.api import Api, service_options
from ccq_cli.console import err, out

_POLL_SECONDS = 0.5
_as_json = click.option("--json", "as_json", is_flag=True, help="The service's reply, for programs.")


@click.group("jobs")
def command() -> None:
    """List, show, cancel and wait for the background jobs of a running service.

    They need a key with the scope admin, where there are keys.
    """


@command.command("list")
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--state", help="Only jobs in this state.")
@_as_json
@service_options
def list_(kind: str | None, state: str | None, as_json: bool, url: str, api_key: str | None) -> None:
    """List the jobs, the newest first."""
    given = {name: value for name, value in (("kind", kind), ("state", state)) if value is not None}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
    with Api(url, api_key) as api:
        reply = api.call("GET", f"/jobs?{query}" if query else "/jobs", replies=["jobs"])
    if as_json:
        click.echo(json.dumps(reply))
        return
    table = Table()
    table.add_column("job", no_wrap=True, min_width=max((len(job["id"]) for job in reply["jobs"]), default=0))
    for name in ("target", "state", "progress", "created"):
        table.add_column(name)
    for job in reply["jobs"]:
        table.add_row(job["id"], job["target"], job["state"], _progress(job), job["created"][:19])
    out.print(table)


@command.command("show")
@click.argument("job")
@_as_json
@service_options
def show(job: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Show one job: how far it is, and what it gave."""
    with Api(url, api_key) as api:
        _print(_get(api, job), as_json)


@command.command("cancel")
@click.argument("job")
@_as_json
@service_options
def cancel(job: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Cancel a job that is queued or running."""
    with Api(url, api_key) as api:
        found = _get(api, job)
        if found["ended"] is not None:
            raise click.ClickException(f"job {job} has ended: {found['state']}")
        found = api.call("DELETE", _path(job), replies=["id", "state"])
    if as_json:
        click.echo(json.dumps(found))
    else:
        out.print(f"job {job}: {found['state'] if found['state'] == 'cancelled' else 'is being cancelled'}")


@command.command("wait")
@click.argument("job")
@_as_json
@service_options
def wait(job: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Wait until a job has ended, and show it. The exit status is 0 only if it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Api(url, api_key) as api, Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=None)
        while (found := _get(api, job))["ended"] is None:
            now = found["progress"]
            if now is not None:
                bar.update(task, description=_phase(now), total=now["total"], completed=now["done"])
            else:
                bar.update(task, description=found["state"])
            time.sleep(_POLL_SECONDS)
    _print(found, as_json)
    if found["state"] != "done":
        raise click.exceptions.Exit(1)


def _get(api: Api, job: str) -> dict[str, Any]:
    found: dict[str, Any] = api.call("GET", _path(job), replies=["id", "state", "ended", "progress"])
    return found


def _path(job: str) -> str:
    return f"/jobs/{quote(job, safe='', errors='surrogateescape').replace('.', '%2E')}"


def _phase(now: dict[str, Any]) -> str:
    loss = f", loss {now['loss']:.4f}" if "loss" in now else ""
    left = f", {now['seconds_left']:.0f} s left" if now["seconds_left"] is not None else ""
    return f"{now['phase']}{loss}{left}"


def _progress(job: dict[str, Any]) -> str:
    now = job["progress"]
    if job["state"] != "running" or now is None:
        return ""
    return f"{_phase(now)}, {now['done']:,} of {'?' if now['total'] is None else format(now['total'], ',')}"


def _print(job: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(job))
        return
    out.print(f"job {job['id']} ({job['target']}): {job['state']}", *filter(None, [_progress(job)]))
    if job["error"] is not None:
        out.print(f"{job['error']['code']}: {job['error']['detail']}")
    for name, value in (job["result"] or {}).items():
        if name == "evaluation":
            _print_evaluation(value)
        elif not isinstance(value, list):
            out.print(f"  {name}: {value}")


def _print_evaluation(directions: list[dict[str, Any]]) -> None:
    table = Table("direction", "by", "recall@1", "recall@10", "recall@100", "mean rank")
    for direction in directions:
        name = f"{direction['query']} -> {direction['database']}"
        for by in ("codes", "floats"):
            found = direction[by]
            shares = [f"{found[f'recall_at_{k}']:.3f}" for k in (1, 10, 100)]
            table.add_row(name, by, *shares, f"{found['mean_rank']:.1f}")
    if directions:
        out.print(table)
