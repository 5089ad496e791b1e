"""`ccq health`."""

from __future__ import annotations

import click

from ccq_cli.api import connect, service_options
from ccq_cli.console import out
from ccq_cli.shown import local_json_option, print_json
from ccq_client import CCQError


@click.command("health")
@local_json_option
@service_options
def command(as_json: bool, url: str, api_key: str | None) -> None:
    """Exit with status 0 if a running service is ready to search, and with 1 otherwise."""
    with connect(url, api_key) as client:
        try:
            client.wait_until_ready(0.0)
        except CCQError:
            if as_json:
                print_json({"ready": False})
            raise
    if as_json:
        print_json({"ready": True})
    else:
        out.print("ready")
