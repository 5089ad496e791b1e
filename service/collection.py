"""A collection in memory: code tables that follow the store, and views of them that searches read.

The store is the truth. Once it has committed a write, its one writing thread brings the tables to the same version and
publishes them as a new `View`, and only then the write returns. So what was acknowledged is durable and seen by every
search that starts afterwards. Should anything fail between commit and publishing, the tables are thrown away and loaded
again from the store: memory never stays behind it, and never runs ahead.

A search takes a snapshot of the store and the view of the same version, so codes, ids and payloads are of one moment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

from ccq_core import CCQ
from ccq_core.table import CodeTable, TableView
from service.errors import StorageError, UnavailableError, WouldTakeLongError
from service.kept import KINDS, KeptLayout
from service.records import Bytes, Codes, Layout
from service.store.interface import ANY, Change, CollectionRecord, NewItem, Seqs, Snapshot, Store, Terms

log = logging.getLogger(__name__)

_TRIES = 50
_PAUSE_SECONDS = 0.0005

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class View:
    """What a collection holds at one version. Immutable.

    Attributes
    ----------
    version:
        The store's version that this is.
    items:
        Number of items.
    tables:
        Code rows by database; labels are the items' sequence numbers.
    """

    version: int
    items: int
    tables: Mapping[str, TableView]

    @cached_property
    def rows(self) -> int:
        """Number of code rows in all databases."""
        return sum(table.rows for table in self.tables.values())

    def codes(self, seq: int) -> dict[str, Bytes]:
        """An item's code row (M + 1,) uint8 in each of the databases that it is in, in their order."""
        found = {name: table.get(seq) for name, table in self.tables.items()}
        return {name: row for name, row in found.items() if row is not None}


class Collection:
    """One collection, loaded.

    Parameters
    ----------
    store, record:
        Where its items are.
    model:
        The model that encodes its items and queries.
    progress:
        Called while loading with the number of items loaded, and of all.
    """

    def __init__(
        self, store: Store, record: CollectionRecord, model: CCQ, progress: Progress = lambda _done, _all: None
    ) -> None:
        self.record = record
        self.model = model
        self.layout = Layout.of(model)
        self.kept = KeptLayout(record.keep, model.dims) if record.keep in KINDS else None
        self._store = store
        self._tables, self._view = self._load(progress)

    @property
    def view(self) -> View:
        """The collection as it was after the last write."""
        return self._view

    @property
    def model_checksum(self) -> str:
        """SHA-256 of the model's file, in hex. It is read from the store, where no model in use is replaced."""
        return self._store.model(self.record.model).checksum

    # -- writing ---------------------------------------------------------------------------------------------------

    def upsert(self, items: Sequence[NewItem], codes: Codes, terms: Terms = ANY) -> Change:
        """Store items with distinct ids; those whose id is known are replaced. Durable and visible on return.

        Parameters
        ----------
        items:
            n items; their records are the packed `codes`.
        codes:
            The codes of the same items.
        terms:
            On what terms, as for all writes.

        Raises
        ------
        UnknownCollectionError
            The collection was deleted meanwhile.
        VersionMismatchError, KeyReusedError, DoneBefore
            The terms do not hold: nothing was changed.
        StorageFullError, StorageBusyError, StorageError
            Nothing was changed.
        """

        def publish(change: Change) -> None:
            self._follow(change, codes)

        with self._in_step():
            return self._store.upsert(self.record, items, self.layout.pack(codes), publish, terms)

    def delete_ids(self, ids: Sequence[str], terms: Terms = ANY) -> Change:
        """Delete the items with these ids that exist. Raises what `upsert` raises."""
        with self._in_step():
            return self._store.delete_ids(self.record, ids, self._follow, terms)

    def delete_where(self, matches: Callable[[Snapshot], Iterable[int]], terms: Terms = ANY) -> Change | None:
        """Delete the items whose seq `matches` finds in a snapshot; None if none. Raises what `upsert` raises."""
        with self._in_step():
            return self._store.delete_where(self.record, matches, self._follow, terms)

    def set_payload(self, item_id: str, payload: bytes | None, terms: Terms = ANY) -> Change:
        """Replace the payload of an item; UnknownItemError if there is none, or what `upsert` raises."""
        with self._in_step():
            return self._store.set_payload(self.record, item_id, payload, self._follow, terms)

    @contextmanager
    def _in_step(self) -> Iterator[None]:
        """One write; if it fails, memory is what the store is all the same."""
        try:
            yield
        except UnavailableError:
            try:
                self._store.exclusively(self._catch_up)
            except Exception:  # the first error is the one to tell; the next search or write tries again
                log.debug("collection %r: not loaded again", self.record.name, exc_info=True)
            raise

    def _follow(self, change: Change, codes: Codes | None = None) -> None:
        """Bring the tables to a version that was committed, and publish it."""
        if (
            change.version <= self._view.version
        ):  # loaded again after an earlier write, which was committed with this one
            return
        try:
            self._apply(change, codes)
        except Exception:
            # The write is durable, so it has succeeded; the tables may hold a part of it.
            log.exception("collection %r: loading it again after a write", self.record.name)
            self._tables, self._view = self._load()

    def _apply(self, change: Change, codes: Codes | None) -> None:
        view = self._view
        if change.version != view.version + 1:  # an earlier write left memory behind, and loading failed then
            raise RuntimeError(f"memory is at version {view.version}, the write made version {change.version}")
        for i, table in enumerate(self._tables.values()):
            table.delete(change.removed)
            if codes is not None:
                table.append(*codes.of(i, change.added))
        items = view.items + len(change.added) - len(change.removed)
        self._view = _view_of(change.version, items, self._tables)

    # -- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def read(self, *, quick: bool = False) -> Iterator[tuple[View, Snapshot]]:
        """The collection at one moment: codes, and a snapshot of the store, of the same version.

        Parameters
        ----------
        quick:
            Do not wait for anything, and have a snapshot that reads only what it knows where to find.

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
        for _ in range(_TRIES):
            with ExitStack() as attempt:
                snapshot = attempt.enter_context(self._store.snapshot(self.record, quick=quick))
                view = self._view
                if view.version == snapshot.version:
                    stack.push(attempt.pop_all())
                    return view, snapshot
            if quick:
                raise WouldTakeLongError
            time.sleep(_PAUSE_SECONDS)  # a write is committed and about to be published, or was just published

        def alone() -> tuple[View, Snapshot]:
            self._catch_up()
            return self._view, stack.enter_context(self._store.snapshot(self.record))

        return self._store.exclusively(alone)  # writes come too fast, or a failed one left memory behind

    # -- memory and store ------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Load again unless memory is at the store's version. Only while nothing is written."""
        with self._store.snapshot(self.record) as snapshot:
            current = snapshot.version == self._view.version
        if not current:
            log.warning("collection %r: memory differs from the store, loading it again", self.record.name)
            self._tables, self._view = self._load()

    def _load(self, progress: Progress = lambda _done, _all: None) -> tuple[dict[str, CodeTable], View]:
        tables = {database: CodeTable(self.layout.width) for database in self.layout.databases}
        read = 0
        with self._store.snapshot(self.record) as snapshot:
            items, gone = snapshot.count(), snapshot.gone()
            for seqs, records in snapshot.codes():
                self._append(tables, seqs, records)
                read += len(seqs)
                progress(min(read, items), items)
            for table in tables.values():
                table.delete(gone)
            if read - len(gone) != items:
                raise StorageError(
                    f"collection {self.record.name!r}: {items} items, but codes of {read - len(gone)}: restore a "
                    "snapshot, or make the collection anew"
                )
            return tables, _view_of(snapshot.version, items, tables)

    def _append(self, tables: Mapping[str, CodeTable], seqs: Seqs, records: bytes) -> None:
        try:
            codes = self.layout.unpack(records)
        except ValueError as error:
            raise StorageError(f"collection {self.record.name!r}: {error}") from error
        if len(codes) != len(seqs):
            raise StorageError(
                f"collection {self.record.name!r}: {len(seqs)} items with codes of another length than the model's"
            )
        for i, table in enumerate(tables.values()):
            table.append(*codes.of(i, seqs))


def _view_of(version: int, items: int, tables: Mapping[str, CodeTable]) -> View:
    return View(version, items, {database: table.view() for database, table in tables.items()})
