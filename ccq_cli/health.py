"""`ccq health`."""

from __future__ import annotations

import click

from ccq_cli.api import connect, service_options
from ccq_cli.console import out


@click.command("health")
@service_options
def command(url: str, api_key: str | None) -> None:
    """Exit with status 0 if a running service is ready to search, and with 1 otherwise."""
    with connect(url, api_key) as client:
        client.wait_until_ready(0.0)
    out.print("ready")
