"""The reference of the command line as Markdown, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ccq_cli.main import VERBS, main

INTRO = """\
# All verbs and options

How verbs go together is in [The command line](../cli.md). This page is made from
the commands themselves whenever these pages are built: each is what `ccq VERB --help` says.
Input files are described in [File formats](files.md), the variables of `ccq serve` in
[Settings](../service.md#settings). Every error is one line on standard error, and exit status 1; a wrong
call is status 2.
"""


def page() -> str:
    """The whole page: a heading for each verb, and one for each verb below it."""
    parts = [INTRO]
    root = click.Context(main, info_name="ccq", terminal_width=100, max_content_width=100)
    for name in VERBS:
        command = main.get_command(root, name)
        if command is None:
            raise ValueError(f"ccq has no verb {name!r}, though its list of verbs has")
        parts += _sections(command, name, root, 2)
    return "\n".join(parts)


def _sections(command: click.Command, name: str, parent: click.Context, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)
    yield f"{'#' * level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _sections(found, below, context, level + 1)
