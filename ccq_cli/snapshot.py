"""`ccq snapshot`."""

from __future__ import annotations

from pathlib import Path

import click

from ccq_cli.api import connect, service_options
from ccq_cli.console import out
from ccq_cli.shown import json_option, plain, print_json
from ccq_client import Client
from ccq_core.modelfile import check_writable
from service import archive
from service.errors import StartError


@click.command("snapshot")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to download it to; otherwise it stays on the server's disk alone.",
)
@click.option("--move", is_flag=True, help="Delete it on the server once it is downloaded and verified.")
@json_option
@service_options
def command(output: Path | None, move: bool, as_json: bool, url: str, api_key: str | None) -> None:
    """Make a snapshot of a running service, which goes on serving and writing meanwhile.

    `ccq restore` makes a data directory of it. It needs a key with the scope admin, where there are keys.
    """
    if move and output is None:
        raise click.UsageError("--move: give the file to move it to by -o")
    if output is not None:
        check_writable(output)
    with connect(url, api_key) as client:
        made = client.snapshots.create()
        if not as_json:
            out.print(f"made snapshot {made.name}: {made.size:,} bytes")
        if output is not None:
            _download(client, made.name, output)
        if move:
            client.snapshots.delete(made.name)
    if as_json:
        print_json({**plain(made), "output": output and str(output), "moved": move})
    elif output is not None:
        out.print(f"{'moved' if move else 'downloaded'} to {output}")


def _download(client: Client, name: str, output: Path) -> None:
    """Only what is whole, and verified, gets its name."""
    part = output.with_name(output.name + ".unverified")
    try:
        client.snapshots.download(name, part)
        archive.verify(part)
        part.replace(output)
    except StartError as error:
        raise click.ClickException(str(error)) from None
    finally:
        part.unlink(missing_ok=True)
