"""`ccq health`."""

from __future__ import annotations

import click

from ccq_cli.api import Api, service_options
from ccq_cli.console import out


@click.command("health")
@service_options
def command(url: str, api_key: str | None) -> None:
    """Exit with status 0 if a running service is ready to search, and with 1 otherwise."""
    with Api(url, api_key) as api:
        api.call("GET", "/readyz", replies=["status"])
    out.print("ready")
