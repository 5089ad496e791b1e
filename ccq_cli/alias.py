"""`ccq alias`."""

from __future__ import annotations

import click

from ccq_cli.api import connect, service_options
from ccq_cli.console import out
from ccq_cli.options import NewName
from ccq_cli.shown import json_option, print_json, print_table


@click.group("alias")
def command() -> None:
    """List, set and delete aliases: other names of the collections of a running service."""


@command.command("list")
@json_option
@service_options
def list_(as_json: bool, url: str, api_key: str | None) -> None:
    """List all aliases, and the collections that they lead to."""
    with connect(url, api_key) as client:
        found = client.aliases.list()
    if as_json:
        print_json({"aliases": found})
    else:
        print_table(["alias", "collection"], [(one.alias, one.collection) for one in found])


@command.command("set")
@click.argument("alias", type=NewName())
@click.argument("collection")
@json_option
@service_options
def set_(alias: str, collection: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Let ALIAS lead to COLLECTION from now on, also if it led to another."""
    with connect(url, api_key) as client:
        found = client.aliases.set(alias, collection)
    if as_json:
        print_json(found)
    else:
        out.print(f"{found.alias} leads to collection {found.collection}")


@command.command("delete")
@click.argument("alias")
@service_options
def delete(alias: str, url: str, api_key: str | None) -> None:
    """Delete ALIAS; its collection stays."""
    with connect(url, api_key) as client:
        client.aliases.delete(alias)
    out.print(f"deleted alias {alias}")
