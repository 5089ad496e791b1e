"""A collection in memory: code tables that follow the store, and views of them that searches read.

The store is the truth. A write is one transaction of the store; once it is committed the tables are brought to the same
version and published as a new `View`, and only then the write returns. So what was acknowledged is durable and seen by
every search that starts afterwards. Should anything fail between commit and publishing, the tables are thrown away and
loaded again from the store: memory never stays behind it, and never runs ahead.

A search takes a snapshot of the store and the view of the same version, so codes, ids and payloads are of one moment.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ccq_core import CCQ
from ccq_core.table import CodeTable, TableView
from service.errors import StorageError
from service.records import Codes, Layout
from service.store.interface import Change, CollectionRecord, NewItem, Seqs, Snapshot, Store

log = logging.getLogger(__name__)

LOAD_CHUNK = 1 << 16
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
        self._store = store
        self._writing = threading.Lock()
        self._tables, self._view = self._load(progress)

    @property
    def view(self) -> View:
        """The collection as it was after the last write."""
        return self._view

    # -- writing ---------------------------------------------------------------------------------------------------

    def upsert(self, items: Sequence[NewItem], codes: Codes) -> None:
        """Store items with distinct ids; those whose id is known are replaced. Durable and visible on return.

        Parameters
        ----------
        items:
            n items; their records are the packed `codes`.
        codes:
            The codes of the same items.

        Raises
        ------
        UnknownCollectionError
            The collection was deleted meanwhile.
        StorageFullError, StorageBusyError, StorageError
            Nothing was changed.
        """
        with self._write():
            self._follow(self._store.upsert(self.record, items), codes)

    def delete_ids(self, ids: Iterable[str]) -> int:
        """Delete the items with these ids that exist; how many. Raises what `upsert` raises."""
        with self._write():
            return self._follow(self._store.delete_ids(self.record, ids))

    def delete_where(self, matches: Callable[[Snapshot], Iterable[int]]) -> int:
        """Delete the items whose seq `matches` finds in a snapshot; how many. Raises what `upsert` raises."""
        with self._write():  # no other write comes between the snapshot and the deletion
            with self._store.snapshot(self.record) as snapshot:
                seqs = list(matches(snapshot))
            return self._follow(self._store.delete_seqs(self.record, seqs)) if seqs else 0

    @contextmanager
    def _write(self) -> Iterator[None]:
        """One write at a time; afterwards, whatever happened, memory is what the store is."""
        with self._writing:
            try:
                yield
            except BaseException:
                try:
                    self._catch_up()
                except Exception:  # the first error is the one to tell; the next search or write tries again
                    log.debug("collection %r: not loaded again", self.record.name, exc_info=True)
                raise

    def _follow(self, change: Change, codes: Codes | None = None) -> int:
        """Bring the tables to a version that was committed, and publish it. Returns how many items were removed."""
        try:
            self._apply(change, codes)
        except Exception:
            # The write is durable, so it has succeeded; the tables may hold a part of it.
            log.exception("collection %r: loading it again after a write", self.record.name)
            self._tables, self._view = self._load()
        return len(change.removed)

    def _apply(self, change: Change, codes: Codes | None) -> None:
        view = self._view
        if change.version != view.version + 1:  # an earlier write left memory behind, and loading failed then
            raise RuntimeError(f"memory is at version {view.version}, the write made version {change.version}")
        for i, table in enumerate(self._tables.values()):
            table.delete(change.removed)
            if codes is not None:
                present = codes.present[:, i]
                table.append(change.added[present], codes.rows[present, i])
        items = view.items + len(change.added) - len(change.removed)
        self._view = _view_of(change.version, items, self._tables)

    # -- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[tuple[View, Snapshot]]:
        """The collection at one moment: codes, and a snapshot of the store, of the same version.

        Raises
        ------
        UnknownCollectionError
            The collection was deleted.
        StorageBusyError, StorageError
            The database cannot be read.
        """
        with ExitStack() as stack:
            yield self._moment(stack)

    def _moment(self, stack: ExitStack) -> tuple[View, Snapshot]:
        for _ in range(_TRIES):
            with ExitStack() as attempt:
                snapshot = attempt.enter_context(self._store.snapshot(self.record))
                view = self._view
                if view.version == snapshot.version:
                    stack.push(attempt.pop_all())
                    return view, snapshot
            time.sleep(_PAUSE_SECONDS)  # a write is committed and about to be published, or was just published
        with self._writing:  # writes come too fast, or a failed one left memory behind
            self._catch_up()
            return self._view, stack.enter_context(self._store.snapshot(self.record))

    # -- memory and store ------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Load again unless memory is at the store's version. Only while holding the lock of writes."""
        with self._store.snapshot(self.record) as snapshot:
            current = snapshot.version == self._view.version
        if not current:
            log.warning("collection %r: memory differs from the store, loading it again", self.record.name)
            self._tables, self._view = self._load()

    def _load(self, progress: Progress = lambda _done, _all: None) -> tuple[dict[str, CodeTable], View]:
        tables = {database: CodeTable(self.layout.width) for database in self.layout.databases}
        items = 0
        with self._store.snapshot(self.record) as snapshot:
            total = snapshot.count()
            for seqs, records in snapshot.records(LOAD_CHUNK):
                self._append(tables, seqs, records)
                items += len(seqs)
                progress(items, total)
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
            present = codes.present[:, i]
            table.append(seqs[present], codes.rows[present, i])


def _view_of(version: int, items: int, tables: Mapping[str, CodeTable]) -> View:
    return View(version, items, {database: table.view() for database, table in tables.items()})
