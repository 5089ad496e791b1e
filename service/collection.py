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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from ccq_core import CCQ
from service.encoders.named import Encoders
from service.errors import StorageError, UnavailableError, UnknownModelError, WouldTakeLongError
from service.kept import KINDS, KeptLayout
from service.records import Codes
from service.store.interface import ANY, Change, CollectionRecord, NewItem, Seqs, Snapshot, Staging, Store, Terms
from service.tables import Coder, Progress, Tables, View

log = logging.getLogger(__name__)

_TRIES = 50
_PAUSE_SECONDS = 0.0005


@dataclass(frozen=True)
class Encoded:
    """Codes of items, and what encoded them."""

    codes: Codes
    coder: Coder


class Collection:
    """One collection, loaded. `encoders` are those of its modalities that have one; see `service.encoders.raw`.

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
        self.kept = KeptLayout(record.keep, model.dims) if record.keep in KINDS else None
        self.encoders: Encoders = {}  # replaced, and never written to
        self._store = store
        self._coders = {record.generation: Coder.of(record, model)}
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
            return self._store.model(coder.record.model).checksum
        except UnknownModelError:
            return ""

    # -- writing ---------------------------------------------------------------------------------------------------

    def upsert(self, items: Sequence[NewItem], encoded: Encoded, terms: Terms = ANY) -> Change:
        """Store items with distinct ids; those whose id is known are replaced. Durable and visible on return.

        Parameters
        ----------
        items:
            n items.
        encoded:
            Their codes.
        terms:
            On what terms, as for all writes.

        Raises
        ------
        UnknownCollectionError
            The collection was deleted meanwhile.
        ModelChanged
            The collection has another model than they were encoded with: nothing was changed.
        VersionMismatchError, KeyReusedError, DoneBefore
            The terms do not hold: nothing was changed.
        StorageFullError, StorageBusyError, StorageError
            Nothing was changed.
        """

        def publish(change: Change) -> None:
            self._follow(change, encoded.codes)

        coder = encoded.coder
        with self._in_step():
            return self._store.upsert(coder.record, items, coder.layout.pack(encoded.codes), publish, terms)

    def delete_ids(self, ids: Sequence[str], terms: Terms = ANY) -> Change:
        """Delete the items with these ids that exist. Raises what `upsert` raises."""
        with self._in_step():
            return self._store.delete_ids(self._record, ids, self._follow, terms)

    def delete_where(self, matches: Callable[[Snapshot], Iterable[int]], terms: Terms = ANY) -> Change | None:
        """Delete the items whose seq `matches` finds in a snapshot; None if none. Raises what `upsert` raises."""
        with self._in_step():
            return self._store.delete_where(self._record, matches, self._follow, terms)

    def set_payload(self, item_id: str, payload: bytes | None, terms: Terms = ANY) -> Change:
        """Replace the payload of an item; UnknownItemError if there is none, or what `upsert` raises."""
        with self._in_step():
            return self._store.set_payload(self._record, item_id, payload, self._follow, terms)

    def adopt(
        self, staging: Staging, most: int, tables: Tables, gone: Seqs, encode: Callable[[list[bytes], Seqs], Codes]
    ) -> Change | None:
        """Have another model from now on, and the codes that are staged for it, in one write.

        Parameters
        ----------
        staging, most:
            What is staged, and how many items may be left that are not.
        tables, gone:
            All that is staged, but for those of these deleted items that were among it. Not to be used afterwards,
            unless nothing was done.
        encode:
            Encodes the items that are left, from their kept features and sequence numbers.

        Returns
        -------
        None if more items are left: nothing was done.

        Raises what `upsert` and `encode` raise.
        """
        last: tuple[Seqs, Codes | None, Seqs] = gone, None, gone

        def finish(seqs: Seqs, kept: list[bytes], deleted: Seqs) -> bytes:
            nonlocal last
            codes = encode(kept, seqs) if len(seqs) else None
            last = seqs, codes, np.setdiff1d(deleted, gone, assume_unique=True)
            return b"" if codes is None else tables.coder.layout.pack(codes)

        def replace() -> Tables:
            seqs, codes, deleted = last
            tables.delete(deleted)
            if codes is not None:
                tables.append(seqs, codes)
            return tables

        now = self._view.coder
        self._coders = {coder.record.generation: coder for coder in (now, tables.coder)}
        with self._in_step():
            change = staging.adopt(most, finish, lambda change: self._follow(change, replace))
        if change is not None:
            self._coders.pop(now.record.generation)
        return change

    @contextmanager
    def _in_step(self) -> Iterator[None]:
        """One write; if it fails, memory is what the store is all the same."""
        try:
            yield
        except UnavailableError:
            try:
                self._store.exclusively(self._catch_up)
            except Exception:  # the first error is the one to tell; the next search or write tries again
                log.debug("collection %r: not loaded again", self._record.name, exc_info=True)
            raise

    def _follow(self, change: Change, bring: Codes | Callable[[], Tables] | None = None) -> None:
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
                snapshot = attempt.enter_context(self._store.snapshot(self._record, quick=quick))
                view = self._view
                if view.version == snapshot.version:
                    stack.push(attempt.pop_all())
                    return view, snapshot
            if quick:
                raise WouldTakeLongError
            time.sleep(_PAUSE_SECONDS)  # a write is committed and about to be published, or was just published

        def alone() -> tuple[View, Snapshot]:
            self._catch_up()
            return self._view, stack.enter_context(self._store.snapshot(self._record))

        return self._store.exclusively(alone)  # writes come too fast, or a failed one left memory behind

    # -- memory and store ------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Load again unless memory is at the store's version. Only while nothing is written."""
        with self._store.snapshot(self._record) as snapshot:
            current = snapshot.version == self._view.version
        if not current:
            log.warning("collection %r: memory differs from the store, loading it again", self._record.name)
            self._tables, self._view = self._load()

    def _load(self, progress: Progress = lambda _done, _all: None) -> tuple[Tables, View]:
        with self._store.snapshot(self._record) as snapshot:
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
