"""Entry point of `ccq`: one module per verb, loaded when the verb is used."""

from __future__ import annotations

import importlib
import io
import os
import sys
from difflib import get_close_matches
from typing import Any

import click

from ccq_cli.api import DEFAULT_URL
from ccq_cli.words import in_words
from ccq_client import CCQError as ClientError
from ccq_core import CCQError, __version__
from ccq_core.errors import FeatureError, InvalidInputError

VERBS = {
    "demo": "Train on emoji, serve, and search pictures by words and words by pictures.",
    "train": "Train a model on feature arrays, here or in a service.",
    "recommend": "Say which code length fits a number of items, into memory and in time.",
    "evaluate": "Measure retrieval quality: MAP by labels, or recall of partners.",
    "encode": "Turn feature arrays into codes.",
    "info": "Describe a model file, or what is installed.",
    "serve": "Serve collections over HTTP.",
    "keys": "Create, list and delete the API keys of a service.",
    "index": "Store feature arrays in a service, or in a data directory.",
    "export": "Write a collection to files, for `ccq index` to read.",
    "search": "Search a running service.",
    "bench": "Measure scanning, encoding and training on this machine.",
    "snapshot": "Make a snapshot of a running service, and download it.",
    "restore": "Make a data directory of a snapshot.",
    "collections": "List, show, create and delete the collections of a running service.",
    "models": "List, show, upload, download and delete the models of a running service.",
    "alias": "List, set and delete other names of collections.",
    "reencode": "Encode a collection of a running service anew by another model.",
    "jobs": "List, show, cancel and wait for the background jobs of a running service.",
    "check": "Check every page and code of a data directory.",
    "health": "Ask whether a running service is ready.",
}


_AT = f"--url says where the service is, as in --url {DEFAULT_URL}."
_ELSEWHERE = {"--port": _AT, "--host": _AT, "--data": "A service that runs is asked; --url says where it is."}
"""What is said of options that a verb of a running service does not have, and others do."""
EXPECTED = (CCQError, ClientError, OSError, MemoryError)


def explain(error: Exception) -> str:
    """One of the `EXPECTED` errors in words."""
    match error:
        case ClientError():
            return in_words(error)
        case OSError(strerror=str()):
            return f"{error.filename or 'output'}: {error.strerror}"
        case _:
            return str(error) or type(error).__name__


class Verbs(click.Group):
    """Loads the module of a verb on first use, and turns expected errors into one line and exit status 1."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # not every terminal can show every id
        try:
            return super().main(*args, **kwargs)
        except EXPECTED as error:
            click.echo(f"Error: {explain(error)}", err=True)
            _flush_or_drop_output()
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; say which option is meant by one that it does not have, and in which file a fault is."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if error.option_name in _ELSEWHERE and error.ctx and any(p.name == "url" for p in error.ctx.command.params):
                reason = f"{error.message} {_ELSEWHERE[error.option_name]}"
                raise click.UsageError(reason, error.ctx) from None
            raise
        except FeatureError as error:
            from ccq_cli.data import FILES

            file = ctx.meta.get(FILES, {}).get(error.modality)
            if file is None:
                raise
            row = "" if error.row is None else f"row {error.row}: "
            raise InvalidInputError(f"{file}: {error.modality}: {row}{error.reason}") from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is named; for one that is none, those that are alike."""
        if args and args[0] not in VERBS and not args[0].startswith("-") and not ctx.resilient_parsing:
            alike = " or ".join(f"`ccq {verb}`" for verb in get_close_matches(args[0], VERBS))
            ctx.fail(
                f"No such command {args[0]!r}. " + (f"Did you mean {alike}?" if alike else "`ccq --help` lists them.")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """All verbs, of which none is loaded for that."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"ccq_cli.{cmd_name}")
        command: click.Command = module.command
        command.short_help = VERBS[cmd_name]
        return command


def _flush_or_drop_output() -> None:
    """Write what is still to be written; where that fails, keep Python from trying, and complaining, at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ccq")
def main() -> None:
    """Cross-modal search over short codes, from training to a REST service."""
