"""`ccq serve`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import click

from ccq_cli.settings import read_settings, unknown_variables
from service.errors import StartError
from service.restore import restore
from service.server import serve
from service.settings import Settings


def _defaulted(name: str, words: str) -> str:
    return f"{words}  [default: {Settings.model_fields[name].default}]"


@click.command("serve")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the database, made if it is missing. Required, here or as CCQ_DATA.",
)
@click.option(
    "--model",
    envvar="CCQ_MODEL",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Model file: creates the default collection if it does not exist.",
)
@click.option(
    "--restore",
    "snapshot",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Snapshot: makes the data directory, which must have no database, before it is served.",
)
@click.option("--host", help=_defaulted("host", "Address to listen on; 0.0.0.0 is every one."))
@click.option(
    "--port", type=click.IntRange(0, 65535), help=_defaulted("port", "Port to listen on; 0 takes a free one.")
)
@click.option("--until-eof", is_flag=True, hidden=True, help="Stop when standard input ends, as a parent process does.")
def command(model: Path | None, snapshot: Path | None, until_eof: bool, **flags: Any) -> None:
    """Serve collections over HTTP.

    Every setting can also be given as an environment variable, CCQ_DATA, CCQ_PORT and so on, of which there are more
    (docs/service.md); flags come first.
    """
    try:
        if until_eof:
            threading.Thread(target=_stop_at_eof, name="ccq-eof", daemon=True).start()
        settings = read_settings(**flags)
        for unknown in unknown_variables(os.environ):
            click.echo(f"ccq serve: warning: {unknown}", err=True)
        if snapshot is not None:
            restore(snapshot, settings.data)
        serve(settings, model)
    except StartError as error:
        raise click.ClickException(str(error)) from None


def _stop_at_eof() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
