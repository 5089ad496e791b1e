"""`ccq serve`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from service.errors import StartError
from service.restore import restore
from service.server import serve
from service.settings import Settings


@click.command("serve")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Directory of the database.")
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
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.")
@click.option("--until-eof", is_flag=True, hidden=True, help="Stop when standard input ends, as a parent process does.")
def command(model: Path | None, snapshot: Path | None, until_eof: bool, **flags: Any) -> None:
    """Serve collections over HTTP.

    Every setting can also be given as an environment variable CCQ_NAME; flags come first.
    """
    try:
        if until_eof:
            threading.Thread(target=_stop_at_eof, name="ccq-eof", daemon=True).start()
        settings = Settings(**{name: value for name, value in flags.items() if value is not None})
        if snapshot is not None:
            restore(snapshot, settings.data)
        serve(settings, model)
    except ValidationError as error:
        raise click.ClickException("\n".join(_setting(found) for found in error.errors())) from None
    except StartError as error:
        raise click.ClickException(str(error)) from None


def _stop_at_eof() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _setting(found: Any) -> str:
    name = str(found["loc"][0])
    if found["type"] == "missing":
        return f"{name}: give --{name} or set CCQ_{name.upper()}"
    return f"{name}: {found['msg']}, got {found['input']!r} (CCQ_{name.upper()})"
