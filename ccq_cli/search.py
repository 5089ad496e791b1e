"""`ccq search`."""

from __future__ import annotations

import json
from typing import Any

import click
import orjson
from numpy.typing import NDArray
from rich.table import Table

from ccq_cli.api import Api, collection_option, collection_path, service_options, to_base64
from ccq_cli.console import out
from ccq_cli.data import read_features
from ccq_core.errors import InvalidInputError
from ccq_core.features import check_array


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--row", type=click.IntRange(0), default=0, show_default=True, help="Row of the arrays to search with.")
@click.option("--database", multiple=True, help="image, text, pair, ...; given several times: one merged ranking.")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True)
@click.option("--filter", "condition", help="Filter on payloads, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="The service's reply, for programs.")
@service_options
@collection_option
def command(
    query: tuple[str, ...],
    row: int,
    database: tuple[str, ...],
    limit: int,
    condition: str | None,
    as_json: bool,
    url: str,
    api_key: str | None,
    collection: str,
) -> None:
    """Search a running service.

    QUERY is id=ITEM for the neighbours of a stored item, or NAME=FILE.npy for each modality of the query.
    """
    body: dict[str, Any] = {"limit": limit}
    if len(query) == 1 and query[0].startswith("id="):
        body["query_id"] = query[0].removeprefix("id=")
    else:
        features = read_features(query, vectors=True)
        body["query"] = {name: to_base64(_row(name, array, row)) for name, array in features.items()}
    names = [name for given in database for name in given.split(",")]
    if names:
        body["database"] = names if len(names) > 1 else names[0]
    if condition is not None:
        try:
            orjson.loads(condition)
        except orjson.JSONDecodeError as error:
            raise click.BadParameter(f"--filter: not valid JSON ({error})") from None
        body["filter"] = orjson.Fragment(condition)
    with Api(url, api_key) as api:
        reply = api.call("POST", collection_path(collection, "search"), body, replies=["results", "took_ms"])
    if as_json:
        click.echo(json.dumps(reply))
        return
    table = Table("rank", "id", "database", "score", "payload")
    for rank, hit in enumerate(reply["results"], 1):
        payload = "" if hit.get("payload") is None else json.dumps(hit["payload"], ensure_ascii=False)
        table.add_row(str(rank), hit["id"], hit["database"], f"{hit['score']:.4f}", payload)
    out.print(table)
    out.print(f"{reply['took_ms']:.1f} ms")


def _row(name: str, table: NDArray[Any], row: int) -> NDArray[Any]:
    if row >= len(table):
        raise InvalidInputError(f"--row {row}: {name} has {len(table)} rows")
    vector, present = check_array(name, table[row : row + 1])
    if not present.all():
        raise InvalidInputError(f"--row {row}: {name} is all NaN there")
    row_vector: NDArray[Any] = vector[0]
    return row_vector
