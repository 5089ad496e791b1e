"""`ccq keys`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import ValidationError
from rich.table import Table

from ccq_cli.console import err, out
from ccq_cli.shown import local_json_option, print_json
from service import keys
from service.errors import StartError
from service.keys import FILE_NAME, Key, Scope
from service.schemas.names import NAME_RULE

_data = click.option(
    "--data",
    envvar="CCQ_DATA",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Data directory of the service; made if it is missing.",
)
_known_data = click.option(
    "--data",
    envvar="CCQ_DATA",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Data directory of the service.",
)

_LAST_KEY = (
    "no key is left. A service that runs lets nobody in; one that is started now asks for no key, and serves this "
    "machine alone unless CCQ_OPEN=true"
)


def _told(function: Callable[..., None]) -> Callable[..., None]:
    """Tell a file of keys that cannot be used in one line."""

    @wraps(function)
    def wrapped(**options: Any) -> None:
        try:
            function(**options)
        except StartError as error:
            raise click.ClickException(str(error)) from None

    return wrapped


@click.group("keys")
def command() -> None:
    """Create, list and delete the API keys of a service. A service that runs follows within a second."""


def _known(key: Key) -> dict[str, Any]:
    """What people are told of a key: not the key, and no hash of it."""
    return key.model_dump(mode="json", exclude={"hash"})


@command.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(get_args(Scope)),
    help="What the key allows; may be repeated. admin includes the others.",
)
@click.option("--collection", "collections", multiple=True, help="Only for this collection; may be repeated.")
@local_json_option
@_data
@_told
def create(name: str, scopes: tuple[Scope, ...], collections: tuple[str, ...], data: Path, as_json: bool) -> None:
    """Create an API key, and print it: it is kept nowhere."""
    try:
        secret, key = keys.new(name, scopes, collections or None)
    except ValidationError:
        raise click.BadParameter(f"expected names of keys and collections of {NAME_RULE}") from None
    with keys.changed(data) as known:
        if name in known:
            raise click.ClickException(f"there is a key {name!r} already: delete it, or choose another name")
        known[name] = key
    if as_json:
        print_json({**_known(key), "key": secret})
        return
    err.print(f"Key {name!r}, for services with the data directory {data}. It is shown this once:")
    out.print(secret)


@command.command("list")
@local_json_option
@_known_data
@_told
def list_(data: Path, as_json: bool) -> None:
    """List the API keys: what is known of them, not the keys themselves."""
    found = keys.read(data / FILE_NAME).values()
    if as_json:
        print_json({"keys": [_known(key) for key in found]})
        return
    table = Table("name", "scopes", "collections", "created")
    for key in found:
        collections = "all" if key.collections is None else ", ".join(key.collections)
        table.add_row(key.name, ", ".join(key.scopes), collections, key.created)
    out.print(table)


@command.command("delete")
@click.argument("name")
@_known_data
@_told
def delete(name: str, data: Path) -> None:
    """Delete an API key: it is not valid any more."""
    with keys.changed(data) as known:
        if known.pop(name, None) is None:
            raise click.ClickException(f"there is no key {name!r}")
    out.print(f"deleted key {name!r}")
    if not known:
        err.print(f"note: {_LAST_KEY}")
