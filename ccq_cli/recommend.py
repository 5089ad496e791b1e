"""`ccq recommend`."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

import click
from rich.table import Table

from ccq_cli.console import err, out
from ccq_cli.options import assignments
from ccq_cli.shown import json_option, print_json
from ccq_cli.sizing import BITS, KEPT_BYTES, Option, Wanted, advice, choose, databases, measure, option, size
from ccq_core import simd

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_QUALITY = (
    "How good the results are depends on the data, which sizes say nothing of: train, and measure with `ccq evaluate`, "
    "or look at the recall that a training in the service tells (`ccq train --name`). Shorter codes may serve as well."
)


class Amount(click.ParamType[int]):
    """A number of items or bytes, as in 10000000, 10M, 1e7, 4GB or 512MiB."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9][0-9_,.]*(?:e[0-9]{1,2})?)\s*([kmgt]?i?)b?", value.strip().lower())
        try:
            amount = 0 if found is None else round(float(found[1].replace(",", "")) * _UNITS[found[2]])
        except (ValueError, KeyError):
            amount = 0
        if amount < 1:
            self.fail(f"{value!r}: expected a number of 1 or more, as in 10000000, 10M, 1e7, 4GB or 512MiB", param, ctx)
        return amount


@click.command("recommend")
@click.option("--items", type=Amount(), required=True, help="How many items there are to be, as in 10M.")
@assignments("--dims", int, required=True, help="Dimensions, as in image=512,text=512.")
@click.option(
    "--memory", type=Amount(), help="Most memory of the server, as in 4GB; with --keep also while it re-encodes."
)
@click.option("--latency-ms", type=click.FloatRange(0, min_open=True), help="Most time of a search, in milliseconds.")
@click.option("--keep", type=click.Choice(list(KEPT_BYTES)), default="none", show_default=True, help="Keep features.")
@click.option("--norm", type=click.Choice(["byte", "none"]), default="byte", show_default=True, help="Of codes.")
@click.option("--payload-bytes", type=click.IntRange(0), default=60, show_default=True, help="With the id, of an item.")
@json_option
def command(
    items: int,
    dims: dict[str, int],
    memory: int | None,
    latency_ms: float | None,
    keep: str,
    norm: str,
    payload_bytes: int,
    as_json: bool,
) -> None:
    """Say which code lengths fit so many items, how much memory and disk they take, and how long a search takes.

    Sizes are computed (docs/cli.md has the sums), times are measured on this machine, in some seconds.
    """
    if min(dims.values()) < 1:
        raise click.BadParameter(f"--dims: expected dimensions of 1 or more, got {dims}")
    wanted = Wanted(items, dims, payload_bytes, keep, norm == "byte", memory, latency_ms)
    with err.status("measuring"):
        options = [option(wanted, bits, ns) for bits, ns in zip(BITS, measure(BITS, items), strict=True)]
    best, hints = choose(options), advice(wanted, options)
    if as_json:
        data = [{**asdict(one), "fits": one.fits} for one in options]
        print_json(
            {"recommended": best and best.bits, "options": data, "advice": hints, "simd_level": simd.get_level()}
        )
    else:
        _tell(wanted, options, best, hints)
    if best is None:
        raise click.exceptions.Exit(1)


def _tell(wanted: Wanted, options: list[Option], best: Option | None, hints: list[str]) -> None:
    _print(options, best, wanted)
    for hint in hints:
        out.print(hint)
    if best is None:
        out.print("Nothing fits.", style="bold")
    else:
        out.print(
            f"{best.bits} bits: `ccq train --bits {best.bits}{' --norm none' * (not wanted.norm)} ...`", style="bold"
        )
    out.print(_QUALITY)


def _print(options: list[Option], best: Option | None, wanted: Wanted) -> None:
    rows = f"{databases(wanted.dims)} code rows" if len(wanted.dims) > 1 else "one code row"
    title = f"{wanted.items:,} items of {rows} each; one search, one thread, {simd.get_level()}"
    table = Table(title=title, title_justify="left")
    kept = wanted.keep != "none"
    for name in ("bits", "bytes a row", "memory", *["re-encoding"] * kept, "disk", "search"):
        table.add_column(name, justify="right")
    table.add_column("")
    for one in options:
        wrong = [name for name, fits in (("memory", one.fits_memory), ("latency", one.fits_latency)) if not fits]
        remark = f"too much {' and '.join(wrong)}" if wrong else "fits, few to train on" if one.few else "fits"
        sizes = [size(amount) for amount in (one.memory, *[one.memory_reencoding] * kept, one.disk)]
        style = "bold" if one is best else None
        table.add_row(str(one.bits), str(one.row_bytes), *sizes, f"{one.latency_ms:.1f} ms", remark, style=style)
    out.print(table)
