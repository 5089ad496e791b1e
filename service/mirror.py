"""A collection in memory: code tables that follow the store, and views of them that searches read.

The store is the truth. What follows it, once a write is committed, brings the tables to the same version and publishes
them as a new `View`. Should anything fail between commit and publishing, the tables are thrown away and loaded again
from the store: memory never stays behind it, and never runs ahead.

A search takes a snapshot of the store and the view of the same version, so codes, ids and payloads are of one moment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol, TypeVar

from ccq_core import CCQ
from service.encoders.named import Encoders
from service.errors import StorageError, UnknownModelError, WouldTakeLongError
from service.kept import KINDS, KeptLayout
from service.records import Codes
from service.store.interface import Change, CollectionRecord, ModelRecord, Snapshot
from service.tables import Coder, Progress, Tables, View

log = logging.getLogger(__name__)

T = TypeVar("T")

_TRIES = 50
_PAUSE_SECONDS = 0.0005


class Source(Protocol):
    """What is asked of a store by those who only read."""

    def model(self, name: str) -> ModelRecord:
        """See `service.store.interface.Store`."""

    def exclusively(self, work: Callable[[], T]) -> T:
        """See `service.store.interface.Store`."""

    def snapshot(self, record: CollectionRecord, *, quick: bool = False) -> AbstractContextManager[Snapshot]:
        """See `service.store.interface.Store`."""


class Mirror:
    """One collection, loaded. `encoders` are those of its modalities that have one; see `service.encoders.raw`.

    Parameters
    ----------
    store, record:
        Where its items are.
    model:
        The model that encodes its items and queries.
    progress:
        Called while loading with the number of items loaded, and of all.
    quick_tries:
        How often a quick read looks for codes and a snapshot of one version, half a millisecond apart.
    """

    def __init__(
        self,
        store: Source,
        record: CollectionRecord,
        model: CCQ,
        progress: Progress = lambda _done, _all: None,
        quick_tries: int = 1,
    ) -> None:
        self.kept = KeptLayout(record.keep, model.dims) if record.keep in KINDS else None
        self.encoders: Encoders = {}  # replaced, and never written to
        self._source = store
        self._coders = {record.generation: Coder.of(record, model)}
        self._quick_tries = quick_tries
        self._record = record
        self._tables, self._view = self._load(progress)

    @property
    def view(self) -> View:
        """The collection as it was after the last write."""
        return self._view

    @property
    def record(self) -> CollectionRecord:
        """The collection as it was then."""
        return self._view.coder.record

    def checksum_of(self, coder: Coder) -> str:
        """SHA-256 of the file of a coder's model, in hex; empty if that model is gone, which it may be once another is.

        It is read from the store, where no model in use is replaced.
        """
        try:
            return self._source.model(coder.record.model).checksum
        except UnknownModelError:
            return ""

    def follow(self, change: Change, bring: Codes | Callable[[], Tables] | None = None) -> None:
        """Bring memory to a version that was committed, and publish it.

        `bring`: the codes of what was added; or what gives tables of that version, where they are others.
        """
        view = self._view
        if change.version <= view.version:  # loaded again after an earlier write, which was committed with this one
            return
        try:
            if change.version != view.version + 1:  # an earlier write left memory behind, and loading failed then
                raise RuntimeError(f"memory is at version {view.version}, the write made version {change.version}")  # noqa: TRY301
            tables = bring() if callable(bring) else self._changed(change, bring)
            items = view.items + len(change.added) - len(change.removed)
            self._tables, self._view = tables, tables.view(change.version, items)
        except Exception:
            # The write is durable, so it has succeeded; the tables may hold a part of it.
            log.exception("collection %r: loading it again after a write", self._record.name)
            self._tables, self._view = self._load()

    def _changed(self, change: Change, codes: Codes | None) -> Tables:
        self._tables.delete(change.removed)
        if codes is not None:
            self._tables.append(change.added, codes)
        return self._tables

    # -- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def read(self, *, quick: bool = False) -> Iterator[tuple[View, Snapshot]]:
        """The collection at one moment: codes, and a snapshot of the store, of the same version.

        Parameters
        ----------
        quick:
            Wait for nothing but `quick_tries`, and have a snapshot that reads only what it knows where to find.

        Raises
        ------
        WouldTakeLongError
            It cannot be done at once.
        UnknownCollectionError
            The collection was deleted.
        StorageBusyError, StorageError
            The database cannot be read.
        """
        with ExitStack() as stack:
            yield self._moment(stack, quick)

    def _moment(self, stack: ExitStack, quick: bool) -> tuple[View, Snapshot]:
        for left in reversed(range(self._quick_tries if quick else _TRIES)):
            with ExitStack() as attempt:
                snapshot = attempt.enter_context(self._source.snapshot(self._record, quick=quick))
                view = self._view
                if view.version == snapshot.version:
                    stack.push(attempt.pop_all())
                    return view, snapshot
            if quick and not left:
                raise WouldTakeLongError
            time.sleep(_PAUSE_SECONDS)  # a write is committed and about to be published, or was just published

        def alone() -> tuple[View, Snapshot]:
            self._catch_up()
            return self._view, stack.enter_context(self._source.snapshot(self._record))

        return self._source.exclusively(alone)  # writes come too fast, or a failed one left memory behind

    # -- memory and store ------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Load again unless memory is at the store's version. Only while nothing is written."""
        with self._source.snapshot(self._record) as snapshot:
            current = snapshot.version == self._view.version
        if not current:
            log.warning("collection %r: memory differs from the store, loading it again", self._record.name)
            self._tables, self._view = self._load()

    def _load(self, progress: Progress = lambda _done, _all: None) -> tuple[Tables, View]:
        with self._source.snapshot(self._record) as snapshot:
            coder = self._coders.get(snapshot.record.generation)
            if coder is None:  # nobody else can have changed it
                raise StorageError(f"collection {self._record.name!r}: its model is another than it was given")
            items, gone = snapshot.count(), snapshot.gone()
            tables = Tables.load(coder, snapshot.codes(), gone, items, progress)
            view = tables.view(snapshot.version, items)
            read = tables.read - len(gone)
            if read != view.items:
                raise StorageError(
                    f"collection {self._record.name!r}: {view.items} items, but codes of {read}: restore a "
                    "snapshot, or make the collection anew"
                )
            return tables, view
