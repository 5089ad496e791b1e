"""`ccq restore`."""

from __future__ import annotations

from pathlib import Path

import click

from ccq_cli.console import out
from service.errors import StartError
from service.restore import restore


@click.command("restore")
@click.argument("snapshot", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--data",
    required=True,
    envvar="CCQ_DATA",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory that the database is to be in; made if it is missing.",
)
def command(snapshot: Path, data: Path) -> None:
    """Make a data directory of SNAPSHOT: all its models, collections and items.

    The directory must not have a database. API keys are in no snapshot: those of the directory stay.
    """
    try:
        manifest = restore(snapshot, data)
    except StartError as error:
        raise click.ClickException(str(error)) from None
    out.print(f"restored {data} as it was at {manifest.created.isoformat(timespec='seconds')}")
    for name, items in manifest.collections.items():
        out.print(f"collection {name}: {items:,} items")
