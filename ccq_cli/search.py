"""`ccq search`."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson
from numpy.typing import NDArray
from rich.table import Table

from ccq_cli.api import collection_option, connect, service_options
from ccq_cli.console import err, out
from ccq_cli.data import column_option, read_features
from ccq_cli.shown import json_option, print_json
from ccq_client import CCQError as ClientError
from ccq_client import Client, EmptyDatabaseWarning, Group, Groups, Hit, Hits, UnknownKeyWarning
from ccq_core.distances import METRICS
from ccq_core.errors import FeatureError, InvalidInputError
from ccq_core.features import check_array

_EXAMPLE = '{"must": [{"key": "brand", "match": {"value": "acme"}}]}'
_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".gif")


@click.command("search")
@click.argument("query", nargs=-1)
@click.option("--words", multiple=True, metavar="NAME=TEXT", help="A text, for which the service has an encoder.")
@click.option("--row", type=click.IntRange(0), help="Row of the arrays to search with; the first by default.")
@column_option
@click.option(
    "--database",
    multiple=True,
    help="image, text, pair, ...; several times: one merged ranking. By default pair, where items with several "
    "modalities are.",
)
@click.option("--unlike", multiple=True, metavar="ITEM", help="A stored item to search away from; may be repeated.")
@click.option(
    "-k", "--limit", type=click.IntRange(1), default=10, show_default=True, help="How many results, or groups."
)
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to pass over.")
@click.option("--score-threshold", type=float, help="Only results with a score of at least this.")
@click.option("--filter", "condition", metavar="JSON", help=f"Only items whose payload matches, as in '{_EXAMPLE}'.")
@click.option("--group-by", metavar="KEY", help="The best groups of results with the same value in their payload.")
@click.option("--group-size", type=click.IntRange(1), help="How many results a group has; 1 by default.")
@click.option("--payload", multiple=True, metavar="KEY", help="Only this of the payload, as in a.b; may be repeated.")
@click.option("--metric", type=click.Choice(METRICS), help="Rank by this; by default as the model does.")
@click.option("--rescore", is_flag=True, help="Rank the best anew by the features that the collection keeps.")
@click.option("--oversampling", type=click.FloatRange(1, 100), help="With --rescore: of how many times as many; 4.")
@json_option
@service_options
@collection_option
def command(
    query: tuple[str, ...],
    words: tuple[str, ...],
    row: int | None,
    columns: tuple[str, ...],
    database: tuple[str, ...],
    unlike: tuple[str, ...],
    limit: int,
    offset: int,
    score_threshold: float | None,
    condition: str | None,
    group_by: str | None,
    group_size: int | None,
    payload: tuple[str, ...],
    metric: str | None,
    rescore: bool,
    oversampling: float | None,
    as_json: bool,
    url: str,
    api_key: str | None,
    collection: str,
) -> None:
    """Search a running service.

    QUERY is id=ITEM for the neighbours of a stored item (repeated: of what several have in common), or NAME=FILE.npy
    for each modality of the query, or FILE.parquet with a column of lists for each; NAME=FILE.jpg (.png, .webp, .gif)
    for an image, where the service has an encoder.
    """
    if score_threshold is not None and not math.isfinite(score_threshold):
        raise click.BadParameter(f"--score-threshold: expected a number, got {score_threshold}")
    if oversampling is not None and not rescore:
        raise click.UsageError("--oversampling is for --rescore")
    if rescore and group_by is not None:
        raise click.UsageError("expected --rescore or --group-by, got both")
    names = [name for given in database for name in given.split(",")]
    options: dict[str, Any] = {
        **_query(query, words, row, columns, unlike),
        "limit": limit,
        "offset": offset,
        "score_threshold": score_threshold,
        "with_payload": list(payload) or None,
        "database": names if len(names) > 1 else "".join(names) or None,
        "filter": None if condition is None else _json(condition),
        "metric": metric,
    }
    bounds: dict[str, object] = {
        "--filter": condition,
        "--score-threshold": score_threshold is not None,
        "--group-by": group_by,
        "--offset": offset,
    }
    with connect(url, api_key) as client, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UnknownKeyWarning)
        warnings.simplefilter("ignore", EmptyDatabaseWarning)  # the reason is in words of the command line
        items = client.collection(collection)
        if group_by is None:
            found: Hits | Groups = items.search(**options, **_anew(rescore, oversampling))
        else:
            found = items.search_groups(**options, group_by=group_by, group_size=group_size or 1)
        reason = "" if found else _why_nothing(client, collection, names, bounds)
    if as_json:
        print_json({"results": list(found), **_rest(found)})
    else:
        _print(found, offset)
        out.print(f"{found.took_ms:.1f} ms")
    for note in filter(None, [reason, *(str(warning.message) for warning in warned)]):
        err.print(f"note: {note}")


def _anew(rescore: bool, oversampling: float | None) -> dict[str, Any]:
    given = {"rescore": rescore or None, "oversampling": oversampling}
    return {name: value for name, value in given.items() if value is not None}


def _why_nothing(client: Client, collection: str, names: list[str], bounds: dict[str, object]) -> str:
    """Why a search found nothing, and what to do; empty if that is not known.

    Parameters
    ----------
    names:
        The databases that were named.
    bounds:
        Options that leave items out, and their values.
    """
    try:
        counts = client.collections.get(collection).databases or {}
    except ClientError:  # it may be another's to ask; the search was answered
        return ""
    searched = names or (["pair"] if "pair" in counts else list(counts))
    filled = [name for name, count in counts.items() if count]
    if not filled:
        return f"collection {collection} has no items yet: `ccq index` stores some"
    if not set(searched) & set(filled):
        there = ", ".join(f"{name} has {counts[name]:,}" for name in filled)
        return f"no item is in database {', '.join(searched)}; {there}: search with --database {filled[0]}"
    there = ", ".join(f"{counts.get(name, 0):,} items in {name}" for name in searched)
    given = ", ".join(name for name, value in bounds.items() if value)
    return f"of {there} none is left by {given}" if given else f"of {there} there is none but the query itself"


def _query(
    query: tuple[str, ...], words: tuple[str, ...], row: int | None, columns: tuple[str, ...], unlike: tuple[str, ...]
) -> dict[str, Any]:
    """What to search for, as arguments of `Client.search`."""
    if not query and not words:
        raise click.UsageError("expected a QUERY, or --words: what to search for")
    against = list(unlike) or None
    if not words and all(given.startswith("id=") for given in query):
        if row is not None:
            raise click.UsageError("--row is for arrays: NAME=FILE.npy")
        ids = [given.removeprefix("id=") for given in query]
        return {"by_id": ids[0]} if len(ids) == 1 and not unlike else {"like": ids, "unlike": against}
    if any(given.startswith("id=") for given in query):
        raise click.UsageError("expected stored items (id=ITEM), or arrays, images and --words: not both in one query")
    features = _features(query, words, row, columns)
    return {"like": [features], "unlike": against} if unlike else {"features": features}


def _features(
    query: tuple[str, ...], words: tuple[str, ...], row: int | None, columns: tuple[str, ...]
) -> dict[str, Any]:
    """What the query has of each modality: a vector, the bytes of an image, or a text."""
    for given in query:
        if "=" not in given and not given.endswith((".npz", ".parquet")):
            kind = "FILE.npy" if not given.lower().endswith(_IMAGES) else "FILE" + Path(given).suffix
            raise click.UsageError(f"{given!r}: expected id={given} for a stored item, or NAME={kind} for a modality")
    images = [given for given in query if given.lower().endswith(_IMAGES)]
    arrays = read_features([given for given in query if given not in images], columns, vectors=True)
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
        raise click.BadParameter(f"--filter: not valid JSON ({error}); expected it as in '{_EXAMPLE}'") from None
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


def _row(name: str, table: NDArray[Any], given: int | None) -> NDArray[Any]:
    row = given or 0
    if row >= len(table):
        raise InvalidInputError(f"--row {row}: {name} has {len(table)} rows")
    if given is None and len(table) > 1:
        err.print(f"note: {name} has {len(table):,} rows: searching with the first one; --row N takes another")
    try:
        vector, present = check_array(name, table[row : row + 1])
    except FeatureError as error:
        raise FeatureError(name, error.reason, row) from None
    if not present.all():
        raise InvalidInputError(f"--row {row}: {name} is all NaN there")
    row_vector: NDArray[Any] = vector[0]
    return row_vector
