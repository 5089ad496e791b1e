"""`ccq health`."""

from __future__ import annotations

import click

from ccq_cli.api import DEFAULT_URL, Api
from ccq_cli.console import out


@click.command("health")
@click.option("--url", envvar="CCQ_URL", default=DEFAULT_URL, show_default=True, help="The service.")
def command(url: str) -> None:
    """Exit with status 0 if a running service is ready to search, and with 1 otherwise."""
    with Api(url) as api:
        api.call("GET", "/readyz", replies=["status"])
    out.print("ready")
