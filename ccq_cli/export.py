"""`ccq export`."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ccq_cli.api import API_KEY, collection_option
from ccq_cli.console import out, row_progress
from ccq_cli.origins import Origin, open_origin
from ccq_cli.shown import local_json_option, print_json
from ccq_cli.writers import DirectoryWriter, Writer, written


@click.command("export")
@click.argument("source")
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["npy", "parquet"]),
    help="A directory of arrays and JSON lines, or one Parquet file; by default the latter if OUTPUT ends in .parquet.",
)
@local_json_option
@API_KEY
@collection_option
def command(source: str, output: Path, form: str | None, as_json: bool, api_key: str | None, collection: str) -> None:
    """Write a collection of SOURCE to OUTPUT: ids, payloads, codes, and features where the collection keeps them.

    SOURCE is a data directory that no server uses, or the URL of a service. A directory is read as it is at one
    moment. A service gives its items page by page, each page of its own moment: what is written meanwhile may be in
    OUTPUT or not, and of an item that is replaced meanwhile it has the last that was seen.

    `ccq index OUTPUT` reads it; with --codes without any loss, where the model is the same.
    """
    form = form or ("parquet" if output.suffix == ".parquet" else "npy")
    started = time.perf_counter()
    with (
        open_origin(source, collection, api_key) as origin,
        written(output) as place,
        closing(_writer(form, place, origin)) as writer,
    ):
        items = _write(origin, writer)
    seconds = time.perf_counter() - started
    if as_json:
        print_json({"collection": collection, "exported": items, "output": str(output), "seconds": seconds})
        return
    out.print(f"exported {items:,} items of collection {collection} to {output} ({seconds:.1f} s)")


def _writer(form: str, place: Path, origin: Origin) -> Writer:
    if form == "npy":
        return DirectoryWriter(place, origin)
    from ccq_cli.parquetwriter import ParquetWriter  # pyarrow takes long to load

    return ParquetWriter(place, origin)


def _write(origin: Origin, writer: Writer) -> int:
    """Write all items; returns their number."""
    rows = 0
    last: dict[str, int] = {}
    with row_progress("exporting", origin.items) as progress:
        for part in origin.parts():
            writer.write(part)
            if not origin.distinct:
                last.update(zip(part.ids, range(rows, rows + len(part.ids)), strict=True))
            rows += len(part.ids)
            progress(rows)
    keep: NDArray[np.bool_] = np.full(rows, origin.distinct)
    if not origin.distinct:
        keep[list(last.values())] = True
    writer.finish(keep)
    return int(keep.sum())
