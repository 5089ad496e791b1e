"""`ccq collections`."""

from __future__ import annotations

from typing import Literal

import click

from ccq_cli.api import connect, service_options
from ccq_cli.console import out
from ccq_cli.options import NewName, assignments
from ccq_cli.shown import json_option, print_facts, print_json, print_table, yes_option


@click.group("collections")
def command() -> None:
    """List, show, create and delete the collections of a running service."""


@command.command("list")
@json_option
@service_options
def list_(as_json: bool, url: str, api_key: str | None) -> None:
    """List the collections."""
    with connect(url, api_key) as client:
        found = client.collections.list()
    if as_json:
        print_json({"collections": found})
        return
    rows = [(one.name, one.model, one.items, one.keep, one.indexes, one.state) for one in found]
    print_table(["collection", "model", "items", "keeps", "indexed keys", "state"], rows)


@command.command("show")
@click.argument("collection")
@json_option
@service_options
def show(collection: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Show one collection."""
    with connect(url, api_key) as client:
        (print_json if as_json else print_facts)(client.collections.get(collection))


@command.command("create")
@click.argument("collection", type=NewName())
@click.option("--model", required=True, help="Name of its model, which the service has.")
@click.option("--keep", type=click.Choice(["none", "float16", "int8"]), help="How to keep features.")
@assignments("--encoders", str, help="Encoders of the service by modality, as in text=emoji.")
@click.option("--index", "indexes", multiple=True, metavar="KEY", help="Key of payloads to index; may be repeated.")
@json_option
@service_options
def create(
    collection: str,
    model: str,
    keep: Literal["none", "float16", "int8"] | None,
    encoders: dict[str, str] | None,
    indexes: tuple[str, ...],
    as_json: bool,
    url: str,
    api_key: str | None,
) -> None:
    """Create COLLECTION.

    If it is there with the same model, nothing changes but its indexes or encoders, where some are named. These are all
    that it has then: an index that is not named again is dropped.
    """
    with connect(url, api_key) as client:
        found = client.collections.create(
            collection, model, indexes=list(indexes) or None, keep=keep, encoders=encoders
        )
    (print_json if as_json else print_facts)(found)


@command.command("delete")
@click.argument("collection")
@yes_option
@service_options
def delete(collection: str, yes: bool, url: str, api_key: str | None) -> None:
    """Delete COLLECTION with all its items."""
    with connect(url, api_key) as client:
        found = client.collections.get(collection)
        if not yes:
            items = "its items" if found.items is None else f"{found.items:,} items"
            click.confirm(f"Delete collection {found.name} of {client.url} with {items}?", abort=True, err=True)
        client.collections.delete(collection)
    out.print(f"deleted collection {collection}")
