"""`ccq info`."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table

from ccq_cli.console import out
from ccq_core import CCQ, __version__, simd


def describe(model: CCQ) -> dict[str, Any]:
    """What a person wants to know of a model, as plain data."""
    return {
        "bits": model.bits,
        "bytes_per_item": model.code_width,
        "latent_dim": int(model.codebooks_.shape[2]),
        "metric": model.metric,
        "norm": model.norm_,
        "modalities": [
            {"name": name, "dim": m.dim, "weight": m.weight, "preprocess": list(m.preprocessing.steps)}
            for name, m in model.modalities_.items()
        ],
        "iterations": len(model.losses_),
        "loss": model.losses_[-1] if model.losses_ else None,
        "seed": model.seed,
    }


def installed() -> dict[str, Any]:
    """What of this package runs here."""
    return {
        "version": __version__,
        "simd_level": simd.get_level(),
        "simd_levels": ", ".join(simd.levels()),
        "threads": simd.get_threads(),
    }


@click.command("info")
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(model: str | None, as_json: bool) -> None:
    """Describe a MODEL file or, without one, what is installed: version, SIMD levels, threads."""
    facts = installed() if model is None else describe(CCQ.load(model))
    if as_json:
        click.echo(json.dumps(facts))
        return
    table = Table(title=model or "ccq-search", show_header=False, title_justify="left")
    for key, value in facts.items():
        if key == "modalities":
            for m in value:
                steps = ", ".join(m["preprocess"]) or "none"
                table.add_row(m["name"], f"{m['dim']} dimensions, weight {m['weight']:g}, preprocessing {steps}")
        else:
            table.add_row(key.replace("_", " "), f"{value:.4f}" if isinstance(value, float) else str(value))
    out.print(table)
