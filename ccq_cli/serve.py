"""`ccq serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from service.errors import StartError
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
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.")
def command(model: Path | None, **flags: Any) -> None:
    """Serve collections over HTTP.

    Every setting can also be given as an environment variable CCQ_NAME; flags come first.
    """
    try:
        settings = Settings(**{name: value for name, value in flags.items() if value is not None})
        serve(settings, model)
    except ValidationError as error:
        raise click.ClickException("\n".join(_setting(found) for found in error.errors())) from None
    except StartError as error:
        raise click.ClickException(str(error)) from None


def _setting(found: Any) -> str:
    name = str(found["loc"][0])
    if found["type"] == "missing":
        return f"{name}: give --{name} or set CCQ_{name.upper()}"
    return f"{name}: {found['msg']}, got {found['input']!r} (CCQ_{name.upper()})"
