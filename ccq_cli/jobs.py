"""`ccq jobs`."""

from __future__ import annotations

from typing import get_args

import click

from ccq_cli import jobview
from ccq_cli.api import connect, connect_for_long, service_options
from ccq_cli.console import out
from ccq_cli.shown import json_option, print_json, print_table
from ccq_client.jobs import State


@click.group("jobs")
def command() -> None:
    """List, show, cancel and wait for the background jobs of a running service.

    They need a key with the scope admin, where there are keys.
    """


@command.command("list")
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--state", type=click.Choice(get_args(State)), help="Only jobs in this state.")
@json_option
@service_options
def list_(kind: str | None, state: State | None, as_json: bool, url: str, api_key: str | None) -> None:
    """List the jobs, the newest first."""
    with connect(url, api_key) as client:
        jobs = client.jobs.list(kind=kind, state=state)
    if as_json:
        print_json({"jobs": jobs})
        return
    rows = [(job.id, job.target, job.state, jobview.progress_of(job), job.created) for job in jobs]
    print_table(["job", "target", "state", "progress", "created"], rows)


@command.command("show")
@click.argument("job")
@json_option
@service_options
def show(job: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Show one job: how far it is, and what it gave."""
    with connect(url, api_key) as client:
        jobview.show(client.jobs.get(job), as_json)


@command.command("cancel")
@click.argument("job")
@json_option
@service_options
def cancel(job: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Cancel a job that is queued or running."""
    with connect(url, api_key) as client:
        found = client.jobs.cancel(job)
    if found.finished and found.state != "cancelled":
        raise click.ClickException(f"job {job} has ended: {found.state}")
    if as_json:
        print_json(found)
    else:
        out.print(f"job {job}: {found.state if found.finished else 'is being cancelled'}")


@command.command("wait")
@click.argument("job")
@json_option
@service_options
def wait(job: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Wait until a job has ended, and show it. The exit status is 0 only if it is done."""
    with connect_for_long(url, api_key) as client:
        jobview.follow(client, job, as_json)
