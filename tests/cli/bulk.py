"""What tests of bulk import and export share."""

from __future__ import annotations

from typing import Any

import orjson
from click.testing import CliRunner

from ccq_cli.main import main
from ccq_cli.settings import read_settings
from ccq_client import Client
from service.listing import read_all
from service.runtime import Runtime

PAYLOADS = [None, {"title": "n° ☃"}, {"n": 1.5, "deep": [{"a": None}]}, {}, {"big": 2**64 - 1}]


def ok(*arguments: Any) -> str:
    """What a command says that succeeds."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: Any) -> str:
    """What a command says that ends with an error, which is no traceback."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    return result.output


def stored(directory: Any) -> tuple[list[Any], list[Any]]:
    """All that a data directory holds of its collection: ids, payloads, databases, codes in order; and features."""
    runtime = Runtime.open(read_settings(data=directory))
    try:
        loaded = runtime.catalog.load("default")
        rows, features = [], []
        for part in read_all(loaded, features=loaded.kept is not None):
            for i, row in enumerate(part.rows):
                codes = part.codes.rows[i].tolist()
                rows.append((row.id, orjson.loads(row.payload or b"null"), part.codes.present[i].tolist(), codes))
            if part.features is not None:
                features.append({name: array.tolist() for name, array in part.features.arrays.items()})
        return rows, features
    finally:
        runtime.close()


def create_collection(url: str, name: str, **options: str) -> None:
    """A collection of a service, with the model that it began with."""
    with Client(url) as client:
        client.request("PUT", f"/collections/{name}", {"model": "m", **options})
