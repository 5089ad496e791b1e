"""Entry point of `ccq`: one module per verb, loaded when the verb is used."""

from __future__ import annotations

import importlib
from typing import Any

import click
import httpx

from ccq_cli.api import ApiError
from ccq_core import CCQError, __version__

VERBS = {
    "demo": "Train on emoji, serve, and search pictures by words and words by pictures.",
    "train": "Train a model on feature arrays.",
    "evaluate": "Measure retrieval quality (MAP) on labelled data.",
    "encode": "Turn feature arrays into codes.",
    "info": "Describe a model file.",
    "serve": "Serve collections over HTTP.",
    "index": "Send feature arrays to a running service.",
    "search": "Search a running service.",
    "health": "Ask whether a running service is ready.",
}


class Verbs(click.Group):
    """Loads the module of a verb on first use, and turns expected errors into one line and exit status 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"ccq_cli.{cmd_name}")
        command: click.Command = module.command
        command.short_help = VERBS[cmd_name]
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (CCQError, ApiError) as error:
            raise click.ClickException(str(error)) from error
        except httpx.ConnectError as error:
            raise click.ClickException(
                f"no service answers at {error.request.url}: start one with `ccq serve`"
            ) from error
        except httpx.HTTPError as error:
            raise click.ClickException(f"{type(error).__name__}: {error}") from error
        except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ccq")
def main() -> None:
    """Cross-modal search over short codes, from training to a REST service."""
