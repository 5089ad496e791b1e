"""`ccq check`."""

from __future__ import annotations

from pathlib import Path

import click

from service.errors import StartError
from service.store.check import check


@click.command("check")
@click.option(
    "--data",
    required=True,
    envvar="CCQ_DATA",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of the database.",
)
def command(data: Path) -> None:
    """Check every page, code, count and model of a data directory that no server uses.

    Ends with status 1 if anything is not what was written.
    """
    bad = 0
    try:
        for part in check(data):
            click.echo(f"{part.name}: {'ok' if not part.faults else 'DAMAGED'}{part.summary and ', ' + part.summary}")
            for fault in part.faults:
                click.echo(f"  {fault}")
            bad += bool(part.faults)
    except StartError as error:
        raise click.ClickException(str(error)) from None
    if bad:
        raise click.exceptions.Exit(1)
