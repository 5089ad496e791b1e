"""Where `ccq index` puts items: a running service, or a data directory that no server uses."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import click
import numpy as np
import orjson
from threadpoolctl import threadpool_limits

from ccq_cli.api import Api, collection_path, rows_to_base64
from ccq_cli.settings import open_runtime
from ccq_cli.slices import Slice, Source, check_payloads
from service.collection import Collection
from service.errors import UnknownCollectionError
from service.indexing import Arrays, Prepared, prepare_arrays, store_items
from service.schemas.names import NAME_PATTERN, NAME_RULE
from service.settings import Settings


class Destination(Protocol):
    """`threads`: how many slices it can take at one time."""

    threads: int

    def prepare(self, part: Slice) -> Any:
        """Do with a slice what can be done beside others; called in threads."""

    def store(self, prepared: Any) -> None:
        """Do the rest, slice by slice; then its items are durable."""


class Service:
    """A running service.

    Parameters
    ----------
    api, collection:
        The service, and the collection.
    source:
        What slices are of, for messages.
    in_flight:
        How many requests it gets at one time.
    stop:
        Set when no more is to be sent.
    """

    def __init__(self, api: Api, collection: str, source: Source, in_flight: int, stop: threading.Event) -> None:
        self.threads = in_flight
        self._api = api
        self._path = collection_path(collection, "index")
        self._source = source
        self._stop = stop

    def prepare(self, part: Slice) -> None:
        """Send a slice, again where the service asks for that; ApiError, or httpx.HTTPError."""
        if not len(part):
            return
        check_payloads(self._source, part)
        body = _body(part)
        self._api.insist("POST", self._path, body, replies=["indexed"], pause=self._stop.wait)

    def store(self, prepared: None) -> None:
        """Nothing is left to do: the reply said that the items are durable."""


class Directory:
    """A collection of a data directory that this process has opened.

    Parameters
    ----------
    collection, settings:
        The collection, and the settings that bound its items.
    """

    def __init__(self, collection: Collection, settings: Settings) -> None:
        self.threads = settings.search_threads
        self._collection = collection
        self._settings = settings

    def prepare(self, part: Slice) -> Prepared | None:
        """Check and encode a slice; ServiceError names the row of a fault."""
        if not len(part):
            return None
        rows = part.rows
        codes, checksum = (None, None) if part.coded is None else (part.coded.codes, part.coded.checksum)
        arrays = Arrays(part.ids, part.payloads, part.features, codes, checksum, lambda i: ("rows", int(rows[i])))
        return prepare_arrays(self._collection, arrays, self._settings)

    def store(self, prepared: Prepared | None) -> None:
        """Commit a slice: all of it, or nothing."""
        if prepared is not None:
            store_items(self._collection, prepared)


@contextmanager
def open_directory(data: Path, collection: str, model: Path | None, keep: str | None) -> Iterator[Directory]:
    """A data directory, opened as a server does, and a collection of it.

    Parameters
    ----------
    data, collection:
        Both are made if they are missing.
    model:
        File of the model of a new collection. It is stored under the file's stem.
    keep:
        How a new collection keeps features.

    Raises
    ------
    click.ClickException
        Another process uses the directory, it cannot be used, or there is no such collection or another one.
    """
    names = {"collection": collection, **({"model file": model.stem} if model else {})}
    for what, name in names.items():
        if not re.fullmatch(NAME_PATTERN, name):
            raise click.ClickException(f"{what} {name!r}: expected a name of {NAME_RULE}")
    if model is None and not data.is_dir():
        raise click.ClickException(f"data directory {data}: no such directory; to make it, give --model")
    with open_runtime(data, "--url") as runtime:
        catalog = runtime.catalog
        if model is not None:
            catalog.put_model(model.stem, model.read_bytes())
            catalog.create_collection(collection, model.stem, keep=keep)
        try:
            loaded = catalog.load(collection)
        except UnknownCollectionError:
            reason = f"{data} has no collection {collection!r}; to create it, give --model"
            raise click.ClickException(reason) from None
        # Slices are encoded beside each other: threads of the matrix library besides would only be in the way.
        with threadpool_limits(1, user_api="blas"):
            yield Directory(loaded, runtime.settings)


def _body(part: Slice) -> dict[str, Any]:
    """A slice as an `IndexRequest`."""
    vectors = {name: rows_to_base64(array) for name, array in part.features.items()}
    items: list[dict[str, Any]] = []
    for i, (item_id, payload) in enumerate(zip(part.ids, part.payloads, strict=True)):
        item: dict[str, Any] = {"id": item_id}
        features = {name: column[i] for name, column in vectors.items() if column[i] is not None}
        if features:
            item["features"] = features
        if payload is not None:
            item["payload"] = orjson.Fragment(payload)
        items.append(item)
    if part.coded is None:
        return {"items": items}
    codes = part.coded.codes
    columns = [rows_to_base64(codes.rows[:, at], "u1") for at in range(len(part.coded.databases))]
    for i, item in enumerate(items):
        held = np.flatnonzero(codes.present[i]).tolist()
        item["codes"] = {part.coded.databases[at]: columns[at][i] for at in held}
    return {"items": items, "model_checksum": part.coded.checksum}
