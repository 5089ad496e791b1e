"""What `ccq export` reads: a collection of a data directory that no server uses, or of a running service."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import click
import numpy as np
import orjson

from ccq_cli.api import connect_for_long
from ccq_cli.exported import Manifest
from ccq_cli.settings import is_data, open_runtime
from ccq_client import Client, Item
from ccq_core import CCQ
from ccq_core.features import Float32
from service.listing import Listed, read_all
from service.records import Codes, Layout
from service.runtime import Runtime

PER_PAGE = 1000


@dataclass(frozen=True)
class Stored:
    """n items as they are stored.

    Attributes
    ----------
    ids, payloads:
        Of each; payloads as JSON.
    codes:
        Code rows in the databases of the manifest.
    features:
        (n, P) float32 by modality, rows of NaN where an item lacks it; of all that the manifest names.
    """

    ids: Sequence[str]
    payloads: Sequence[bytes | None]
    codes: Codes
    features: Mapping[str, Float32]


class Origin(Protocol):
    """A collection.

    Attributes
    ----------
    manifest:
        What it is.
    dims:
        Dimension of each modality.
    items:
        How many items it has, or had a moment ago.
    distinct:
        Whether no id comes twice.
    """

    manifest: Manifest
    dims: Mapping[str, int]
    items: int
    distinct: bool

    def parts(self) -> Iterator[Stored]:
        """All its items in order of insertion."""

    def model(self, out: IO[bytes]) -> None:
        """Write the file of its model."""


class DirectoryOrigin:
    """A collection of a data directory. All its items are of one moment."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        catalog = runtime.catalog
        self._collection = catalog.load(name)
        self._catalog = catalog
        coder = self._collection.view.coder
        self.items = self._collection.view.items
        self.dims: Mapping[str, int] = coder.model.dims
        self.distinct = True
        self.manifest = Manifest(
            collection=name,
            model=coder.record.model,
            model_checksum=self._collection.checksum_of(coder),
            keep=coder.record.keep,
            indexes=catalog.entry(name).indexes,
            code_width=coder.layout.width,
            databases=list(coder.layout.databases),
            features=[] if self._collection.kept is None else list(self.dims),
        )

    def parts(self) -> Iterator[Stored]:
        """All its items in order of insertion."""
        for listed in read_all(self._collection, features=bool(self.manifest.features)):
            yield _of_listed(listed)

    def model(self, out: IO[bytes]) -> None:
        """Write the file of its model."""
        out.write(self._catalog.model_file(self.manifest.model))


class ServiceOrigin:
    """A collection of a running service. Its items come in pages, each of its own moment.

    Raises
    ------
    ccq_client.CCQError, ModelFileError
        The service refuses something, is not there, or gives no model.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        found = client.collections.get(name)
        self._file = client.models.file(found.model)
        model = CCQ.from_bytes(self._file)
        layout = Layout.of(model)
        self._limit = min(PER_PAGE, client.limits().max_limit)
        self.dims: Mapping[str, int] = model.dims
        self.distinct = False
        self.items = found.items or 0
        self.manifest = Manifest(
            collection=name,
            model=found.model,
            model_checksum=hashlib.sha256(self._file).hexdigest(),
            keep=found.keep,
            indexes=list(found.indexes),
            code_width=layout.width,
            databases=list(layout.databases),
            features=[] if found.keep == "none" else list(self.dims),
        )

    def parts(self) -> Iterator[Stored]:
        """All its items in order of insertion. One that is replaced meanwhile may come twice: the last counts."""
        collection, features = self._client.collection(self._name), bool(self.manifest.features)
        cursor: str | None = None
        while True:
            page = collection.item_page(limit=self._limit, cursor=cursor, with_codes=True, with_features=features)
            if page.model != self.manifest.model:
                raise _of_two_models()
            if page:
                yield self._stored(page)
            cursor = page.next_cursor
            if cursor is None:
                break
        if self._client.models.get(self.manifest.model).checksum != self.manifest.model_checksum:
            raise _of_two_models()

    def model(self, out: IO[bytes]) -> None:
        """Write the file of its model."""
        out.write(self._file)

    def _stored(self, items: Sequence[Item]) -> Stored:
        shape = (len(items), len(self.manifest.databases))
        codes = Codes(np.zeros(shape, dtype=bool), np.zeros((*shape, self.manifest.code_width), dtype=np.uint8))
        features = {
            name: np.full((len(items), self.dims[name]), np.nan, dtype=np.float32) for name in self.manifest.features
        }
        try:
            for i, item in enumerate(items):
                for database, code in (item.codes or {}).items():
                    at = self.manifest.databases.index(database)
                    codes.present[i, at] = True
                    codes.rows[i, at] = code
                for name, vector in (item.features or {}).items():
                    features[name][i] = vector
        except (KeyError, ValueError) as error:
            reason = f"item {item.id!r} does not fit the model of the collection ({type(error).__name__}: {error})"
            raise click.ClickException(reason) from None
        payloads = [None if item.payload is None else orjson.dumps(item.payload) for item in items]
        return Stored([item.id for item in items], payloads, codes, features)


def _of_two_models() -> click.ClickException:
    return click.ClickException(
        "the collection got another model meanwhile: its codes are those of two models, export it again"
    )


@contextmanager
def open_origin(source: str, collection: str, api_key: str | None) -> Iterator[Origin]:
    """A collection of a running service, if `source` is a URL, or else of a data directory.

    Raises
    ------
    click.ClickException, ccq_client.CCQError
        It cannot be read.
    """
    if "://" in source:
        with connect_for_long(source, api_key) as client:
            yield ServiceOrigin(client, collection)
    elif not is_data(Path(source)):
        raise click.ClickException(f"{source}: expected a data directory, or the URL of a service (http://...)")
    else:
        with open_runtime(Path(source), "its URL") as runtime:
            yield DirectoryOrigin(runtime, collection)


def _of_listed(listed: Listed) -> Stored:
    features = {}
    if listed.features is not None:
        for name, array in listed.features.arrays.items():
            features[name] = np.where(listed.features.present[name][:, None], array, np.float32(np.nan))
    return Stored([row.id for row in listed.rows], [row.payload for row in listed.rows], listed.codes, features)
