"""What the service asks of a store, so that another database can stand behind it.

A store is the truth: what a method has returned from is durable. Sequence numbers (`seq`) name the items of a
collection in order of insertion; they only grow and are never used twice. Every write to a collection's items raises
its version by one.

Writes that arrive while others are being committed are committed together, in the order of their arrival. Each stays a
write of its own: one that fails changes nothing, and no matter of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.store.jobrecords import JobStore

T = TypeVar("T")

Seqs = NDArray[np.int64]


@dataclass(frozen=True)
class ModelRecord:
    """A stored model, without its file. `checksum` is the file's SHA-256 in hex, `created` ISO 8601 in UTC."""

    name: str
    checksum: str
    size: int
    created: str


@dataclass(frozen=True)
class CollectionRecord:
    """A stored collection. `number` is never used twice, so a collection made anew is another one.

    `keep`: how features are kept (see `service.kept`), or ``none``. `generation`: another number for each model that it
    has had; codes of one generation mean nothing to another.
    """

    number: int
    name: str
    model: str
    keep: str = "none"
    generation: int = 0


class NewItem(NamedTuple):
    """An item to store; `payload` is JSON, `kept` a record of features where the collection keeps them."""

    id: str
    payload: bytes | None
    kept: bytes | None = None


@dataclass(frozen=True)
class ItemRow:
    """A stored item. `version`: that of the collection when the item was last written."""

    seq: int
    id: str
    version: int
    payload: bytes | None


@dataclass(frozen=True)
class Change:
    """What a write did.

    Attributes
    ----------
    version:
        The collection's version from now on.
    added, removed:
        Ascending sequence numbers of items that are new, and of items that are gone.
    """

    version: int
    added: Seqs
    removed: Seqs


@dataclass(frozen=True)
class Copied:
    """What a copy of everything holds: its `schema` version, and the number of items of each of its `collections`."""

    schema: int
    collections: Mapping[str, int]


Publish = Callable[[Change], None]
Finish = Callable[[Seqs, list[bytes], Seqs], bytes]
"""Encodes the last items: see `Staging.adopt`."""


@dataclass(frozen=True)
class Once:
    """A write that is to be done once, however often it is asked for: its reply is stored with it.

    Attributes
    ----------
    key:
        What the client calls it; distinct in its collection for as long as replies are kept.
    digest:
        Hash of all that was asked for.
    reply:
        The reply, from what the write did; None: nothing. Called within the transaction, maybe twice.
    """

    key: str
    digest: bytes
    reply: Callable[[Change | None], bytes]


class DoneBefore(Exception):  # noqa: N818 (no error)
    """A write that is to be done once was done before; nothing was changed now. `reply`: what was stored with it."""

    def __init__(self, reply: bytes) -> None:
        super().__init__()
        self.reply = reply


class ModelChanged(Exception):  # noqa: N818 (no error)
    """Codes are of a generation that the collection has no longer; nothing was changed. They are to be made anew."""


@dataclass(frozen=True)
class Terms:
    """On what terms items are written. They are looked at within the transaction, so no other write comes between.

    Attributes
    ----------
    versions:
        By id: which version an item must have, 0 if there must be none.
    once:
        The write is to be done once.
    """

    versions: Mapping[str, int] = field(default_factory=dict)
    once: Once | None = None


ANY = Terms()
"""Whatever is there, and every time."""


class Snapshot(Protocol):
    """One collection at one moment, whatever is written meanwhile. For one thread; one iteration at a time."""

    version: int
    record: CollectionRecord

    def count(self) -> int:
        """Number of items."""

    def codes(self) -> Iterator[tuple[Seqs, bytes]]:
        """Sequence numbers and joined code records, in order of insertion; those of deleted items too.

        Raises StorageError where what is stored is not what was written.
        """

    def gone(self) -> Seqs:
        """Ascending sequence numbers of the deleted items that `codes` may give."""

    def scan(self, payloads: bool) -> Iterator[tuple[int, str, bytes | None]]:
        """All items' seq, id and (if wanted) payload, in order of insertion."""

    def texts(self, seqs: Iterable[int], payloads: bool) -> Iterator[tuple[int, str, bytes | None]]:
        """Seq, id and (if wanted) payload, for those that exist, in any order."""

    def kept(self, seqs: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Seq and record of kept features, for those that exist, in any order."""

    def kept_behind(self, seq: int, limit: int) -> list[tuple[int, bytes]]:
        """Seq and record of kept features, for the next items behind one, in order of insertion."""

    def last(self) -> int:
        """Seq of the item that was inserted last; 0 if there is none."""

    def item(self, item_id: str) -> ItemRow | None:
        """The item with this id."""

    def page(self, after: int, limit: int) -> Iterator[ItemRow]:
        """Up to `limit` items with a seq above `after`, in order of insertion."""

    def rows(self, seqs: Iterable[int]) -> Iterator[ItemRow]:
        """Items with these ascending sequence numbers, in their order."""

    def named(self, ids: Sequence[str]) -> Seqs:
        """Ascending sequence numbers of the items with these ids that exist."""

    def having(self, key: str, values: Sequence[Any]) -> Seqs | None:
        """Ascending sequence numbers of the items that have any of some scalars under a key; None if not indexed."""

    def within(self, key: str, bounds: Mapping[str, int | float]) -> tuple[Seqs, bool] | None:
        """Those of the items that have a number between bounds (`gt`, `gte`, `lt`, `lte`); None if not indexed.

        And whether no others are among them.
        """

    def existing(self, key: str) -> Seqs | None:
        """Those of the items that have anything under a key; None if not indexed."""


class AliasStore(Protocol):
    """Other names of collections. May raise what a store raises."""

    def all(self) -> dict[str, str]:
        """Aliases, and the names of their collections; by alias."""

    def put(self, alias: str, collection: str) -> bool:
        """Let an alias lead to a collection; whether it is new.

        Raises UnknownCollectionError, or AliasConflictError if the alias is a collection, or the collection an alias.
        """

    def delete(self, alias: str) -> None:
        """Delete an alias; UnknownAliasError if there is none of this name."""


class Staging(Protocol):
    """Codes of another model, gathered beside those that a collection has, in order of insertion. For one thread.

    `record`: the collection as it is to be. All methods may raise what those of `Store` may, UnknownCollectionError if
    the collection is gone, and StorageError once this was abandoned.
    """

    record: CollectionRecord

    def rest(self, limit: int) -> tuple[Seqs, list[bytes]]:
        """Sequence numbers and kept features of the next `limit` items that are not staged; of fewer at the end."""

    def add(self, seqs: Seqs, data: bytes) -> tuple[Seqs, bytes]:
        """Stage the code records of what `rest` gave; those that were not deleted meanwhile, and their records."""

    def codes(self) -> Iterator[tuple[Seqs, bytes]]:
        """Sequence numbers and joined code records of all that is staged, in order of insertion."""

    def gone(self) -> Seqs:
        """Ascending sequence numbers of deleted items: all those that `codes` may give, and maybe others."""

    def adopt(self, most: int, finish: Finish, publish: Publish) -> Change | None:
        """In one write, stage the rest and make what is staged the collection's codes, and the model its model.

        Parameters
        ----------
        most:
            How many items may be left; if more are, nothing is done, and the result is None.
        finish:
            Gives the joined code records of the items that are left, from their sequence numbers and kept features; and
            is told the ascending sequence numbers of all that was staged and deleted since. Maybe called twice.
        publish:
            As for every write. Its version is the next one of the collection; no item is added or removed.
        """

    def abandon(self) -> None:
        """Let go of what is staged, if it was not adopted."""


class Store(Protocol):
    """Models, collections and items. Any method may be called from any thread.

    Any of them may raise StorageFullError, StorageBusyError or StorageError. What raised has changed nothing.

    `publish` of a write is called with what it did once that is durable, in the order of the versions and before the
    write returns; by one thread, which does nothing else meanwhile. It must not raise.

    Attributes
    ----------
    jobs, aliases:
        Background jobs, and other names of collections.
    """

    jobs: JobStore
    aliases: AliasStore

    def close(self) -> None:
        """Finish the writes that were accepted and let go of everything."""

    def put_model(self, name: str, file: bytes) -> Literal["created", "replaced", "unchanged"]:
        """Store a model file under a name; ModelInUseError if a collection uses another file under this name."""

    def models(self) -> list[ModelRecord]:
        """All models, by name."""

    def model(self, name: str) -> ModelRecord:
        """One model; UnknownModelError if there is none of this name."""

    def model_file(self, name: str) -> tuple[ModelRecord, bytes]:
        """A model and its file, of one moment; UnknownModelError if there is none of this name."""

    def delete_model(self, name: str) -> None:
        """Delete a model; UnknownModelError, or ModelInUseError naming the collections."""

    def create_collection(
        self,
        name: str,
        model: str,
        keys: Sequence[str] = (),
        keep: str | None = None,
        encoders: Mapping[str, str] | None = None,
    ) -> tuple[CollectionRecord, bool]:
        """The collection, and whether it is new; a new one has indexes on these payload keys, and these encoders.

        `keep`: how it keeps features; None: as it does, or not at all.

        Raises UnknownModelError, AliasConflictError if the name is that of an alias, or CollectionConflictError if the
        collection exists with another model, or keeps features in another way than `keep`.
        """

    def collections(self) -> list[CollectionRecord]:
        """All collections, by name."""

    def index_keys(self, record: CollectionRecord, keys: Sequence[str]) -> bool:
        """Index exactly these payload keys (paths, ``a.b``); whether that is a change. May take long.

        Raises UnknownCollectionError if the collection is gone, StorageError if a payload is damaged.
        """

    def indexed_keys(self, record: CollectionRecord) -> list[str]:
        """The indexed payload keys, in order."""

    def set_encoders(self, record: CollectionRecord, names: Mapping[str, str]) -> None:
        """Let a collection have exactly these encoders, by modality; UnknownCollectionError if it is gone."""

    def encoders(self, record: CollectionRecord) -> dict[str, str]:
        """Names of a collection's encoders, by modality."""

    def drop_collection(self, record: CollectionRecord) -> None:
        """Delete a collection and its items.

        Raises UnknownCollectionError if it is gone already, or AliasConflictError if an alias leads to it.
        """

    def upsert(
        self, record: CollectionRecord, items: Sequence[NewItem], codes: bytes, publish: Publish, terms: Terms = ANY
    ) -> Change:
        """Store items with distinct ids, in this order; those whose id is known replace the old ones.

        `codes`: their code records, of one length each, joined. Raises UnknownCollectionError if the collection is
        gone, ModelChanged if it is of another generation than in `record`; and as every write that has terms
        VersionMismatchError, KeyReusedError or DoneBefore.
        """

    def delete_ids(self, record: CollectionRecord, ids: Sequence[str], publish: Publish, terms: Terms = ANY) -> Change:
        """Delete the items with these ids that exist; raises what `upsert` raises."""

    def delete_where(
        self,
        record: CollectionRecord,
        matches: Callable[[Snapshot], Iterable[int]],
        publish: Publish,
        terms: Terms = ANY,
    ) -> Change | None:
        """Delete the items whose sequence numbers `matches` finds; None if it finds none.

        No other write comes between. Raises what `matches` and `upsert` raise.
        """

    def set_payload(
        self, record: CollectionRecord, item_id: str, payload: bytes | None, publish: Publish, terms: Terms = ANY
    ) -> Change:
        """Replace the payload (JSON) of an item, which keeps its place and its codes.

        Raises UnknownItemError if there is none of this id, and what `upsert` raises.
        """

    def stage(self, record: CollectionRecord, model: str) -> Staging:
        """Begin to gather codes of another model for a collection that keeps features.

        Until they are adopted or abandoned the model stays. What was not adopted when a store is opened is abandoned.

        Raises UnknownCollectionError, UnknownModelError, or ReencodingError if some are being gathered already.
        """

    def exclusively(self, work: Callable[[], T]) -> T:
        """Do something between two writes: what it returns; raises what it raises."""

    def lend(self) -> Callable[[], None]:
        """Admit a read that another process does, until what is returned is called, once.

        Raises WouldTakeLongError while nothing may be read.
        """

    def size(self) -> int:
        """About how many bytes everything takes."""

    def copy(self, file: Path, check: Callable[[], None]) -> Copied:
        """Copy everything to a new file, as it is at one moment between the call and its end.

        Readers do not wait meanwhile, and writes only for moments. `check` is called now and then; what it raises ends
        the work, and is raised here. The file is not synced to disk, and of no use after an error.
        """

    def snapshot(self, record: CollectionRecord, *, quick: bool = False) -> AbstractContextManager[Snapshot]:
        """The collection as it is now; UnknownCollectionError if it is gone.

        `quick`: WouldTakeLongError where it would have to be waited for, and where all items would have to be read.
        """
