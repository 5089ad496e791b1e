"""`ccq models`."""

from __future__ import annotations

from pathlib import Path

import click

from ccq_cli.api import connect, service_options
from ccq_cli.console import out
from ccq_cli.options import NewName
from ccq_cli.shown import json_option, print_facts, print_json, print_table, yes_option
from ccq_core.modelfile import check_writable


@click.group("models")
def command() -> None:
    """List, show, upload, download and delete the models of a running service."""


@command.command("list")
@json_option
@service_options
def list_(as_json: bool, url: str, api_key: str | None) -> None:
    """List the models."""
    with connect(url, api_key) as client:
        found = client.models.list()
    if as_json:
        print_json({"models": found})
        return
    rows = [
        (one.name, one.bits, one.metric, {name: m.dim for name, m in one.modalities.items()}, one.collections)
        for one in found
    ]
    print_table(["model", "bits", "metric", "dimensions", "collections"], rows)


@command.command("show")
@click.argument("model")
@json_option
@service_options
def show(model: str, as_json: bool, url: str, api_key: str | None) -> None:
    """Show one model."""
    with connect(url, api_key) as client:
        (print_json if as_json else print_facts)(client.models.get(model))


@command.command("upload")
@click.argument("model", type=NewName())
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
@service_options
def upload(model: str, file: Path, as_json: bool, url: str, api_key: str | None) -> None:
    """Upload the model FILE that `ccq train` wrote under the name MODEL."""
    with connect(url, api_key) as client:
        (print_json if as_json else print_facts)(client.models.upload(model, file))


@command.command("download")
@click.argument("model")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@service_options
def download(model: str, output: Path, url: str, api_key: str | None) -> None:
    """Write the file of MODEL."""
    check_writable(output)
    with connect(url, api_key) as client:
        client.models.download(model, output)
    out.print(f"downloaded to {output}")


@command.command("delete")
@click.argument("model")
@yes_option
@service_options
def delete(model: str, yes: bool, url: str, api_key: str | None) -> None:
    """Delete MODEL, which no collection may use."""
    with connect(url, api_key) as client:
        found = client.models.get(model)
        if not yes:
            click.confirm(f"Delete model {found.name} of {client.url}?", abort=True, err=True)
        client.models.delete(model)
    out.print(f"deleted model {model}")
