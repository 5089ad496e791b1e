"""Results of the client on the terminal: as tables for people, as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
from rich.table import Table

from ccq_cli.console import out
from ccq_client.jobs import JobProgress

json_option = click.option("--json", "as_json", is_flag=True, help="For programs: names and values as over HTTP.")
local_json_option = click.option("--json", "as_json", is_flag=True, help="For programs: one line of JSON.")
_MOST = 6  # numbers of a list that people read
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def plain(value: Any) -> Any:
    """A result of the client as JSON values, as the service has them."""
    if isinstance(value, JobProgress):
        data = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return data | data.pop("extra")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    return value


def print_json(value: Any) -> None:
    """One line of JSON."""
    click.echo(json.dumps(plain(value)))


def print_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; the first column is never folded, so that it can be copied."""
    lines = [[cell(value) for value in row] for row in rows]
    table = Table()
    table.add_column(names[0], no_wrap=True, min_width=max((len(line[0]) for line in lines), default=0))
    for name in names[1:]:
        table.add_column(name)
    for line in lines:
        table.add_row(*line)
    out.print(table)


def print_facts(value: Any) -> None:
    """All fields of a result, one a line."""
    table = Table(show_header=False)
    for name, entry in plain(value).items():
        table.add_row(name, cell(entry))
    out.print(table)


def cell(value: object) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {cell(entry)}" for key, entry in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) > _MOST and isinstance(value[0], float):
            return f"{cell(value[0])}, ... {cell(value[-1])} ({len(value):,} numbers)"
        return ", ".join(map(cell, value))
    return str(value)
