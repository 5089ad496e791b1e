"""A collection: what its mirror holds in memory, and the writes that go through the store to it.

The store's one writing thread brings memory to the version of each write that it has committed, tells those who follow,
and only then the write returns. So what was acknowledged is durable and seen by every search that starts afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ccq_core import CCQ
from service.errors import UnavailableError
from service.followers import NOBODY, Followers
from service.mirror import Mirror
from service.records import Codes
from service.store.interface import ANY, Change, CollectionRecord, NewItem, Seqs, Snapshot, Staging, Store, Terms
from service.tables import Coder, Progress, Tables

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Encoded:
    """Codes of items, and what encoded them."""

    codes: Codes
    coder: Coder


class Collection(Mirror):
    """One collection, loaded, to be read and written to.

    Parameters
    ----------
    store, record, model, progress:
        As for `Mirror`.
    followers:
        Told of every write, and of codes that are others.
    """

    def __init__(
        self,
        store: Store,
        record: CollectionRecord,
        model: CCQ,
        progress: Progress = lambda _done, _all: None,
        followers: Followers = NOBODY,
    ) -> None:
        super().__init__(store, record, model, progress)
        self._store = store
        self._followers = followers

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
            self._follow(change, encoded.codes, records)

        coder = encoded.coder
        records = coder.layout.pack(encoded.codes)
        with self._in_step():
            return self._store.upsert(coder.record, items, records, publish, terms)

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

        def publish(change: Change) -> None:
            self.follow(change, replace)
            self._followers.replaced(self.record)

        now = self._view.coder
        self._coders = {coder.record.generation: coder for coder in (now, tables.coder)}
        with self._in_step():
            change = staging.adopt(most, finish, publish)
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

    def _follow(self, change: Change, codes: Codes | None = None, records: bytes | None = None) -> None:
        """Bring memory, and those who follow, to a version that was committed; `records`: the codes, packed."""
        self.follow(change, codes)
        self._followers.changed(self.record, change, records)
