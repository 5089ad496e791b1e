"""`ccq reencode`."""

from __future__ import annotations

import click

from ccq_cli.api import connect_for_long, service_options
from ccq_cli.jobview import detach_option, follow
from ccq_cli.shown import json_option


@click.command("reencode")
@click.argument("collection")
@click.argument("model")
@detach_option
@json_option
@service_options
def command(collection: str, model: str, detach: bool, as_json: bool, url: str, api_key: str | None) -> None:
    """Encode COLLECTION of a running service anew by MODEL, while it is used.

    The collection has to keep features. It has its old codes until the end, and then the new ones at once.
    """
    with connect_for_long(url, api_key) as client:
        follow(client, client.collections.reencode(collection, model), as_json, detach=detach)
