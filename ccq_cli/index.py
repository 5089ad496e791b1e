"""`ccq index`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import httpx
import numpy as np
import orjson
from numpy.typing import NDArray
from rich.progress import track

from ccq_cli.api import Api, ApiError, collection_option, collection_path, service_options, to_base64
from ccq_cli.console import err, out
from ccq_cli.data import DATA_HELP, read_features
from ccq_core.errors import InvalidInputError
from ccq_core.features import check_array


@click.command("index", epilog=DATA_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("--ids", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Text file, one id a line.")
@click.option(
    "--payloads",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Text file, one JSON object a line. An id in it is part of the payload; ids come from --ids.",
)
@click.option("--batch", type=click.IntRange(1), default=1000, show_default=True, help="Items per request.")
@service_options
@collection_option
def command(
    data: tuple[str, ...],
    ids: Path | None,
    payloads: Path | None,
    batch: int,
    url: str,
    api_key: str | None,
    collection: str,
) -> None:
    """Send DATA to a running service.

    Without --ids the row numbers are the ids. An item whose id is known is replaced whole. Rows that have none of the
    modalities are left out. Everything is checked before anything is sent.
    """
    items = _read(data, ids, payloads)
    sent = 0
    with Api(url, api_key) as api:
        starts = range(0, len(items.rows), batch)
        try:
            for lo in track(starts, description="indexing", console=err, transient=True, disable=not err.is_terminal):
                part = items.rows[lo : lo + batch]
                body = {"items": list(items.bodies(part))}
                api.call("POST", collection_path(collection, "index"), body, replies=["indexed"])
                sent += len(part)
        except (ApiError, httpx.HTTPError, KeyboardInterrupt):
            err.print(
                f"stopped: the first {sent:,} of {len(items.rows):,} items are indexed, row {items.at(sent)} is next"
            )
            raise
    left_out = items.total - len(items.rows)
    note = f"; {left_out:,} rows without features left out" if left_out else ""
    out.print(f"indexed {sent:,} items into collection {collection}{note}")


@dataclass(frozen=True)
class Items:
    """What is to be sent: arrays by modality, ids and payloads by row, and the rows that have any features."""

    features: dict[str, NDArray[Any]]
    ids: list[str]
    payloads: list[orjson.Fragment] | None
    rows: NDArray[np.intp]
    total: int

    def at(self, sent: int) -> int:
        """The row that comes after `sent` items."""
        return int(self.rows[sent]) if sent < len(self.rows) else self.total

    def bodies(self, rows: NDArray[np.intp]) -> Iterator[dict[str, Any]]:
        """Some rows as the service takes them."""
        for row in rows.tolist():
            vectors = {name: to_base64(array[row]) for name, array in self.features.items()}
            item: dict[str, Any] = {
                "id": self.ids[row],
                "features": {name: vector for name, vector in vectors.items() if vector is not None},
            }
            if self.payloads is not None:
                item["payload"] = self.payloads[row]
            yield item


def _read(data: tuple[str, ...], ids: Path | None, payloads: Path | None) -> Items:
    features = read_features(data)
    sizes = {name: len(array) for name, array in features.items()}
    total = next(iter(sizes.values()))
    if set(sizes.values()) != {total}:
        raise InvalidInputError(f"the modalities have different numbers of rows: {sizes}")
    names = [str(row) for row in range(total)] if ids is None else _lines(ids, total)
    seen: dict[str, int] = {}
    for row, name in enumerate(names):
        if name in seen:
            raise InvalidInputError(f"{ids}: lines {seen[name] + 1} and {row + 1} are both {name!r}")
        seen[name] = row
    # The same check as in training, so that a bad row is named by its number in the file.
    present = np.logical_or.reduce([check_array(name, array)[1] for name, array in features.items()])
    details = (
        None if payloads is None else [_payload(payloads, i, line) for i, line in enumerate(_lines(payloads, total))]
    )
    return Items(features, names, details, np.flatnonzero(present), total)


def _payload(path: Path, row: int, line: str) -> orjson.Fragment:
    """A line that is a JSON object, as it stands: its numbers may be longer than those of Python or orjson."""
    try:
        payload = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"{path}: line {row + 1}: not valid JSON ({error})") from None
    if payload is not None and not isinstance(payload, dict):
        raise InvalidInputError(f"{path}: line {row + 1}: expected a JSON object, got {line[:60]}")
    return orjson.Fragment(line)


def _lines(path: Path, rows: int) -> list[str]:
    try:
        # Not splitlines(), which also splits at characters that may stand in an id or in JSON.
        lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: not UTF-8 ({error})") from None
    lines = [line.removesuffix("\r") for line in lines]
    if len(lines) != rows:
        raise InvalidInputError(f"{path}: expected {rows} lines, one for each row of the features, got {len(lines)}")
    return lines
