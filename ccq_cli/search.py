"""`ccq search`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson
from numpy.typing import NDArray
from rich.table import Table

from ccq_cli.api import collection_option, connect, service_options
from ccq_cli.console import out
from ccq_cli.data import read_features
from ccq_cli.shown import json_option, print_json
from ccq_client import Group, Groups, Hit, Hits
from ccq_core.errors import InvalidInputError
from ccq_core.features import check_array

_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".gif")


@click.command("search")
@click.argument("query", nargs=-1)
@click.option("--words", multiple=True, metavar="NAME=TEXT", help="A text, for which the service has an encoder.")
@click.option("--row", type=click.IntRange(0), default=0, show_default=True, help="Row of the arrays to search with.")
@click.option(
    "--database",
    multiple=True,
    help="image, text, pair, ...; several times: one merged ranking. By default pair, where items with several "
    "modalities are.",
)
@click.option("--unlike", multiple=True, metavar="ITEM", help="A stored item to search away from; may be repeated.")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="How many results, or groups.")
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to pass over.")
@click.option("--score-threshold", type=float, help="Only results with a score of at least this.")
@click.option("--filter", "condition", help="Filter on payloads, as JSON.")
@click.option("--group-by", metavar="KEY", help="The best groups of results with the same value in their payload.")
@click.option("--group-size", type=click.IntRange(1), help="How many results a group has; 1 by default.")
@click.option("--payload", multiple=True, metavar="KEY", help="Only this of the payload, as in a.b; may be repeated.")
@json_option
@service_options
@collection_option
def command(
    query: tuple[str, ...],
    words: tuple[str, ...],
    row: int,
    database: tuple[str, ...],
    unlike: tuple[str, ...],
    limit: int,
    offset: int,
    score_threshold: float | None,
    condition: str | None,
    group_by: str | None,
    group_size: int | None,
    payload: tuple[str, ...],
    as_json: bool,
    url: str,
    api_key: str | None,
    collection: str,
) -> None:
    """Search a running service.

    QUERY is id=ITEM for the neighbours of a stored item (repeated: of what several have in common), or NAME=FILE.npy
    for each modality of the query; NAME=FILE.jpg (.png, .webp, .gif) for an image, where the service has an encoder.
    """
    if score_threshold is not None and not math.isfinite(score_threshold):
        raise click.BadParameter(f"--score-threshold: expected a number, got {score_threshold}")
    names = [name for given in database for name in given.split(",")]
    options: dict[str, Any] = {
        **_query(query, words, row, unlike),
        "limit": limit,
        "offset": offset,
        "score_threshold": score_threshold,
        "with_payload": list(payload) or None,
        "database": names if len(names) > 1 else "".join(names) or None,
        "filter": None if condition is None else _json(condition),
    }
    with connect(url, api_key) as client:
        items = client.collection(collection)
        if group_by is None:
            found: Hits | Groups = items.search(**options)
        else:
            found = items.search_groups(**options, group_by=group_by, group_size=group_size or 1)
    if as_json:
        print_json({"results": list(found), **_rest(found)})
        return
    _print(found, offset)
    out.print(f"{found.took_ms:.1f} ms")


def _query(query: tuple[str, ...], words: tuple[str, ...], row: int, unlike: tuple[str, ...]) -> dict[str, Any]:
    """What to search for, as arguments of `Client.search`."""
    if not query and not words:
        raise click.UsageError("expected a QUERY, or --words: what to search for")
    against = list(unlike) or None
    if not words and all(given.startswith("id=") for given in query):
        ids = [given.removeprefix("id=") for given in query]
        return {"by_id": ids[0]} if len(ids) == 1 and not unlike else {"like": ids, "unlike": against}
    features = _features(query, words, row)
    return {"like": [features], "unlike": against} if unlike else {"features": features}


def _features(query: tuple[str, ...], words: tuple[str, ...], row: int) -> dict[str, Any]:
    """What the query has of each modality: a vector, the bytes of an image, or a text."""
    images = [given for given in query if given.lower().endswith(_IMAGES)]
    arrays = read_features([given for given in query if given not in images], vectors=True)
    found: list[tuple[str, Any]] = [(name, _row(name, array, row)) for name, array in arrays.items()]
    found += [(name, Path(path).read_bytes()) for name, path in map(_named, images)]
    found += map(_named, words)
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise click.UsageError(f"expected each modality once, got {', '.join(names)}")
    return dict(found)


def _named(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.UsageError(f"expected NAME=..., got {given!r}")
    return name, value


def _json(condition: str) -> orjson.Fragment:
    """A filter that goes to the service as it is, also with numbers that are none here."""
    try:
        orjson.loads(condition)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(f"--filter: not valid JSON ({error})") from None
    return orjson.Fragment(condition)


def _rest(found: Hits | Groups) -> dict[str, Any]:
    """What a reply says besides its results."""
    cursor = {"next_cursor": found.next_cursor} if isinstance(found, Hits) else {}
    return {**cursor, "took_ms": found.took_ms}


def _print(found: Hits | Groups, offset: int) -> None:
    """Hits by rank; with their groups, if they have some."""
    table = Table("rank", *(["group"] if isinstance(found, Groups) else []), "id", "database", "score", "payload")
    results: Sequence[Hit | Group] = found
    for rank, result in enumerate(results, offset + 1):
        group = [json.dumps(result.key, ensure_ascii=False)] if isinstance(result, Group) else []
        for hit in result if isinstance(result, Group) else [result]:
            payload = "" if hit.payload is None else json.dumps(hit.payload, ensure_ascii=False)
            table.add_row(str(rank), *group, hit.id, hit.database, f"{hit.score:.4f}", payload)
    out.print(table)


def _row(name: str, table: NDArray[Any], row: int) -> NDArray[Any]:
    if row >= len(table):
        raise InvalidInputError(f"--row {row}: {name} has {len(table)} rows")
    vector, present = check_array(name, table[row : row + 1])
    if not present.all():
        raise InvalidInputError(f"--row {row}: {name} is all NaN there")
    row_vector: NDArray[Any] = vector[0]
    return row_vector
