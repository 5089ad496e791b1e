"""`ccq info`."""

from __future__ import annotations

import platform
from importlib.util import find_spec
from typing import Any

import apsw
import click
from rich.table import Table

from ccq_cli.console import out
from ccq_cli.shown import local_json_option, print_json
from ccq_core import CCQ, __version__, simd

_EXTRAS = {
    "parquet": ["pyarrow"],
    "jwt": ["jwt", "cryptography"],
    "onnx": ["onnxruntime", "tokenizers", "PIL"],
    "otel": ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"],
    "bench": ["faiss", "matplotlib"],
}
"""Modules by which an extra of the package is known to be installed."""


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
        "python": platform.python_version(),
        "simd_level": simd.get_level(),
        "simd_levels": ", ".join(simd.levels()),
        "threads": simd.get_threads(),
        "sqlite": apsw.sqlite_lib_version(),
        "extras": {name: all(map(_is_there, modules)) for name, modules in _EXTRAS.items()},
    }


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of what it is in
        return False


@click.command("info")
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False))
@local_json_option
def command(model: str | None, as_json: bool) -> None:
    """Describe a MODEL file or, without one, what is installed: versions, SIMD levels, threads, extras."""
    facts = installed() if model is None else describe(CCQ.load(model))
    if as_json:
        print_json(facts)
        return
    table = Table(title=model or "ccq-search", show_header=False, title_justify="left")
    for key, value in facts.items():
        if key == "modalities":
            for m in value:
                steps = ", ".join(m["preprocess"]) or "none"
                table.add_row(m["name"], f"{m['dim']} dimensions, weight {m['weight']:g}, preprocessing {steps}")
        elif key == "extras":
            for name, there in value.items():
                how = "installed" if there else f"not installed (pip install 'ccq-search[{name}]')"
                table.add_row(f"extra {name}", how)
        else:
            table.add_row(key.replace("_", " "), f"{value:.4f}" if isinstance(value, float) else str(value))
    out.print(table)
