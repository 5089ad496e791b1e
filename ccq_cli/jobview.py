"""Background jobs on the terminal: waited for, and shown."""

from __future__ import annotations

from typing import Any

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ccq_cli.console import err, out
from ccq_cli.shown import cell, print_json
from ccq_client import Client, Job, JobError, JobProgress

POLL_SECONDS = 0.5
detach_option = click.option("--detach", is_flag=True, help="Do not wait for the job: print its id, and end.")


def follow(client: Client, job: Job | str, as_json: bool, *, detach: bool = False) -> None:
    """Wait until a job has ended, and show it; the exit status is 0 only if it is done. With `detach` only its id."""
    job_id = job if isinstance(job, str) else job.id
    if detach:
        if as_json:
            print_json(job)
        else:
            out.print(job_id)
            err.print(f"`ccq jobs wait {job_id}` waits for it")
        return
    try:
        found = _wait(client, job_id)
    except JobError as error:
        found = error.job
    except KeyboardInterrupt:
        err.print(f"job {job_id} goes on in the service: `ccq jobs wait {job_id}`, or `ccq jobs cancel {job_id}`")
        raise
    show(found, as_json, named=isinstance(job, str) or found.state != "done")
    if found.state != "done":
        raise click.exceptions.Exit(1)


def show(job: Job, as_json: bool, *, named: bool = True) -> None:
    """A job: how far it is, and what it gave; `named`: with its id, for those who may need it yet."""
    if as_json:
        print_json(job)
        return
    name = f"job {job.id} ({job.target})" if named else job.target
    out.print(f"{name}: {job.state}", *filter(None, [progress_of(job)]))
    if job.error is not None:
        out.print(f"{job.error.code}: {job.error.detail}")
    for key, value in (job.result or {}).items():
        if key == "evaluation":
            print_recall(value)
        elif key == "neighbours":
            print_neighbours(value)
        elif not isinstance(value, list):
            out.print(f"  {key.replace('_', ' ')}: {f'{value:.4g}' if isinstance(value, float) else cell(value)}")


def progress_of(job: Job) -> str:
    """How far a job is that is running, in words."""
    now = job.progress
    if job.state != "running" or now is None:
        return ""
    return f"{_phase(now)}, {now.done:,} of {'?' if now.total is None else format(now.total, ',')}"


def _wait(client: Client, job: str) -> Job:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def report(found: Job) -> None:
            now = found.progress
            if now is None:
                bar.update(task, description=found.state)
            else:
                bar.update(task, description=_phase(now), total=now.total, completed=now.done)

        return client.jobs.wait(job, poll=POLL_SECONDS, progress=report)


def _phase(now: JobProgress) -> str:
    loss = f", loss {now.extra['loss']:.4f}" if "loss" in now.extra else ""
    left = f", {now.seconds_left:.0f} s left" if now.seconds_left is not None else ""
    return f"{now.phase}{loss}{left}"


def print_recall(directions: list[dict[str, Any]]) -> None:
    """How well objects of one modality were found by another, as a service tells of a training."""
    table = Table("direction", "by", "recall@1", "recall@10", "recall@100", "mean rank")
    for direction in directions:
        name = f"{direction['query']} -> {direction['database']}"
        for by in ("codes", "floats"):
            found = direction[by]
            shares = [f"{found[f'recall_at_{k}']:.3f}" for k in (1, 10, 100)]
            table.add_row(name, by, *shares, f"{found['mean_rank']:.1f}")
    if directions:
        out.print(table)


def print_neighbours(modalities: list[dict[str, Any]]) -> None:
    """How near search within a modality comes to exact search by the features themselves, as a service tells it."""
    how = {"codes": "codes", "rescored_4": "rescored, 4 times", "rescored_30": "30 times", "floats": "floats"}
    table = Table("neighbours: recall@10 by", *how.values())
    for modality in modalities:
        table.add_row(modality["modality"], *(f"{modality[key]:.3f}" for key in how))
    if modalities:
        out.print(table)
