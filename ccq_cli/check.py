"""`ccq check`."""

from __future__ import annotations

from pathlib import Path

import click

from ccq_cli.shown import local_json_option, print_json
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
@local_json_option
def command(data: Path, as_json: bool) -> None:
    """Check every page, code, count and model of a data directory that no server uses.

    Ends with status 1 if anything is not what was written.
    """
    parts = []
    try:
        for part in check(data):
            parts.append(part)
            if as_json:
                continue
            click.echo(f"{part.name}: {'ok' if not part.faults else 'DAMAGED'}{part.summary and ', ' + part.summary}")
            for fault in part.faults:
                click.echo(f"  {fault}")
    except StartError as error:
        raise click.ClickException(str(error)) from None
    sound = not any(part.faults for part in parts)
    if as_json:
        print_json({"ok": sound, "parts": parts})
    if not sound:
        raise click.exceptions.Exit(1)
