"""Where `ccq index` puts items: a running service, or a data directory that no server uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import click
import numpy as np
import orjson
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ccq_cli.console import err
from ccq_cli.settings import is_data, open_runtime
from ccq_cli.slices import Coded, Slice, Source, check_payloads
from ccq_client import Client, IndexingError
from ccq_client.errors import ForbiddenError
from ccq_core import modelfile
from service.catalog import Catalog
from service.collection import Collection as Stored
from service.errors import UnknownCollectionError
from service.indexing import Arrays, Prepared, prepare_arrays, store_items
from service.schemas.names import NAME_PATTERN, NAME_RULE
from service.settings import Settings


class Destination(Protocol):
    """Where items go.

    Attributes
    ----------
    threads:
        How many slices it can take at one time.
    ahead:
        Whether items behind one that could not be stored may be stored.
    """

    threads: int
    ahead: bool

    def prepare(self, part: Slice) -> Any:
        """Do with a slice what can be done beside others; called in threads."""

    def store(self, prepared: Any) -> None:
        """Do the rest, slice by slice; then its items are durable."""

    def add_indexes(self, keys: Collection[str]) -> None:
        """Index the values under these keys of payloads too."""


class Service:
    """A running service.

    Parameters
    ----------
    client, collection:
        The service, and the collection.
    source:
        What slices are of, for messages.
    in_flight:
        How many slices it gets at one time.
    """

    def __init__(self, client: Client, collection: str, source: Source, in_flight: int) -> None:
        self.threads = in_flight
        self.ahead = False
        self._client = client
        self._collection = collection
        self._source = source

    def prepare(self, part: Slice) -> None:
        """Send a slice, in one request if the service takes that much; ccq_client.CCQError."""
        if not len(part):
            return
        check_payloads(self._source, part)
        # Payloads go as they are: JSON has numbers that Python would change.
        payloads: list[Any] = [None if payload is None else orjson.Fragment(payload) for payload in part.payloads]
        items = self._client.collection(self._collection)
        try:
            if part.coded is None:
                items.index(part.ids, part.features, payloads, batch_items=len(part))
            else:
                items.index_codes(
                    part.ids,
                    _codes(part.coded),
                    payloads,
                    model_checksum=part.coded.checksum,
                    features=part.features or None,
                    batch_items=len(part),
                )
        except IndexingError as error:
            self.ahead = self.ahead or bool(error.stored) or bool(error.unsure)
            raise error.__cause__ or error from None
        self.ahead = self.ahead or self.threads > 1

    def store(self, prepared: None) -> None:
        """Nothing is left to do: the reply said that the items are durable."""

    def add_indexes(self, keys: Collection[str]) -> None:
        """Index the values under these keys of payloads too. Where the key is for writing alone, tell that only."""
        try:
            known = self._client.collections.get(self._collection)
            if not set(keys) <= set(known.indexes):
                together = list(dict.fromkeys([*known.indexes, *keys]))
                self._client.collections.create(known.name, known.model, indexes=together)
        except ForbiddenError:
            err.print(f"payload keys {', '.join(keys)} are not indexed: that takes an API key with the scope admin")


class Directory:
    """A collection of a data directory that this process has opened.

    Parameters
    ----------
    collection, settings, catalog:
        The collection, the settings that bound its items, and the catalog that it is in.
    """

    def __init__(self, collection: Stored, settings: Settings, catalog: Catalog) -> None:
        self.threads = settings.search_threads
        self.ahead = False
        self._catalog = catalog
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

    def add_indexes(self, keys: Collection[str]) -> None:
        """Index the values under these keys of payloads too."""
        record = self._collection.view.coder.record
        known = self._catalog.entry(record.name).indexes
        if not set(keys) <= set(known):
            self._catalog.create_collection(record.name, record.model, list(dict.fromkeys([*known, *keys])))


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
    if model is None and not is_data(data):
        what = "no database in it" if data.is_dir() else "no such directory"
        raise click.ClickException(f"data directory {data}: {what}; to make it, give --model")
    with open_runtime(data, "--url") as runtime:
        catalog = runtime.catalog
        if model is not None:
            with modelfile.naming(model):
                catalog.put_model(model.stem, model.read_bytes())
            catalog.create_collection(collection, model.stem, keep=keep)
        try:
            loaded = catalog.load(collection)
        except UnknownCollectionError:
            reason = f"{data} has no collection {collection!r}; to create it, give --model"
            raise click.ClickException(reason) from None
        # Slices are encoded beside each other: threads of the matrix library besides would only be in the way.
        with threadpool_limits(1, user_api="blas"):
            yield Directory(loaded, runtime.settings, catalog)


def _codes(coded: Coded) -> list[dict[str, NDArray[np.uint8]]]:
    """Codes by database, of each item."""
    codes = coded.codes
    return [
        {coded.databases[at]: codes.rows[i, at] for at in np.flatnonzero(present).tolist()}
        for i, present in enumerate(codes.present)
    ]
