"""CCQ's service beside others: `python -m benchmarks.peers --items 100000 --json FILE`."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.peers import data
from benchmarks.peers.client import RequestFailedError
from benchmarks.peers.contestant import MissingPeerError
from benchmarks.peers.contestants import chosen
from benchmarks.peers.measure import measure, of_client
from benchmarks.peers.process import ServerError
from benchmarks.peers.results import Machine, Report
from benchmarks.peers.tables import in_full


@click.command()
@click.option("--items", default=100_000, show_default=True, type=click.IntRange(min=1))
@click.option("--queries", default=1000, show_default=True, type=click.IntRange(min=1))
@click.option("--seconds", default=1.0, show_default=True, type=click.FloatRange(min=0.1), help="Length of each load.")
@click.option("--seed", default=0, show_default=True, help="Of items and queries.")
@click.option("--only", multiple=True, help="Measure these alone: a name, or a pattern as of a shell; repeatable.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there too.")
@click.option("--directory", type=click.Path(file_okay=False, exists=True, path_type=Path), help="For temporary files.")
def main(
    items: int,
    queries: int,
    seconds: float,
    seed: int,
    only: tuple[str, ...],
    file: Path | None,
    directory: Path | None,
) -> None:
    """Measure CCQ's service, Chroma and usearch: the same items, the same queries, one client."""
    began = time.perf_counter()
    try:
        contestants = chosen(only)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--only") from None
    except MissingPeerError as error:
        reason = f"{error}: pip install 'ccq-search[peers]', or leave it out by --only 'ccq*'"
        raise click.ClickException(reason) from None
    click.echo(f"{items:,} items, exact answers to {queries:,} queries", err=True)
    given = data.make(items, queries, seed)
    try:
        with tempfile.TemporaryDirectory(prefix="peers-", dir=directory) as folder:
            client = of_client(given, Path(folder), seconds)
            results = []
            for one in contestants:
                results.append(measure(one, given, Path(folder), seconds, _say))
                spent = time.perf_counter() - began
                report = Report(items, queries, seed, seconds, spent, Machine.this(), client, results)
                if file is not None:
                    report.write(file)  # each time, so that a long run that is ended leaves what it found
    except (ServerError, RequestFailedError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(in_full(report))


def _say(what: str) -> None:
    click.echo(what, err=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers and files do not outlive it
    main(prog_name="python -m benchmarks.peers")
