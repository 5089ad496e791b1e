"""`ccq index`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
from numpy.typing import NDArray
from rich.progress import track

from ccq_cli.api import Api, service_options, to_base64
from ccq_cli.console import err, out
from ccq_cli.data import DATA_HELP, read_features
from ccq_core.errors import InvalidInputError


@click.command("index", epilog=DATA_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("--ids", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="One id a line.")
@click.option(
    "--payloads", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="One JSON object a line."
)
@click.option("--batch", type=click.IntRange(1), default=1000, show_default=True, help="Items per request.")
@service_options
def command(
    data: tuple[str, ...], ids: Path | None, payloads: Path | None, batch: int, url: str, collection: str
) -> None:
    """Send DATA to a running service. Without --ids the row numbers are the ids; a known id is replaced."""
    features = read_features(data)
    sizes = {name: len(array) for name, array in features.items()}
    rows = next(iter(sizes.values()))
    if set(sizes.values()) != {rows}:
        raise InvalidInputError(f"the modalities have different numbers of rows: {sizes}")
    names = [str(row) for row in range(rows)] if ids is None else _lines(ids, rows)
    details = None if payloads is None else [orjson.loads(line) for line in _lines(payloads, rows)]
    starts = range(0, rows, batch)
    with Api(url) as api:
        for lo in track(starts, description="indexing", console=err, transient=not err.is_terminal):
            items = list(_items(features, names, details, range(lo, min(lo + batch, rows))))
            api.call("POST", f"/collections/{collection}/index", {"items": items})
    out.print(f"{rows:,} items in collection {collection}")


def _items(
    features: dict[str, NDArray[Any]], names: list[str], details: list[Any] | None, rows: range
) -> Iterator[dict[str, Any]]:
    for row in rows:
        vectors = {name: to_base64(array[row]) for name, array in features.items()}
        item: dict[str, Any] = {"id": names[row], "features": {n: v for n, v in vectors.items() if v is not None}}
        if details is not None:
            item["payload"] = details[row]
        yield item


def _lines(path: Path, rows: int) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) != rows:
        raise InvalidInputError(f"{path}: expected {rows} lines, one for each row of the features, got {len(lines)}")
    return lines
