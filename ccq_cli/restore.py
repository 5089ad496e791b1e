"""`ccq restore`."""

from __future__ import annotations

from pathlib import Path

import click

from ccq_cli.console import out
from ccq_cli.shown import local_json_option, print_json
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
@local_json_option
def command(snapshot: Path, data: Path, as_json: bool) -> None:
    """Make a data directory of SNAPSHOT: all its models, collections and items.

    The directory must not have a database. API keys are in no snapshot: those of the directory stay.
    """
    try:
        manifest = restore(snapshot, data)
    except StartError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        print_json({"data": str(data), **manifest.model_dump(mode="json", include={"created", "collections"})})
        return
    out.print(f"restored {data} as it was at {manifest.created.isoformat(timespec='seconds')}")
    for name, items in manifest.collections.items():
        out.print(f"collection {name}: {items:,} items")
