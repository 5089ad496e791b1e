"""All models and collections of a server: which there are, and how far each is loaded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ccq_core import CCQ
from service.collection import Collection
from service.encoders.named import Encoders, bind, check_fit
from service.errors import (
    AliasConflictError,
    CollectionFailedError,
    CollectionLoadingError,
    DefaultModelError,
    Fault,
    ModelInUseError,
    NotReadyError,
    RequestError,
    ServiceError,
    UnknownCollectionError,
    UnknownModelError,
)
from service.followers import NOBODY, Followers
from service.reencoding import Progress as Reencoding
from service.reencoding import Reencoded, kept_for, reencode
from service.settings import Settings
from service.store.interface import CollectionRecord, ModelRecord, Store
from service.tables import Progress as Loading
from service.traits import KnownTraits, Traits, stored_model

log = logging.getLogger(__name__)


class _Stopped(Exception):  # noqa: N818 (no error)
    """Ends loading when the server stops."""


@dataclass
class Entry:
    """A collection, loaded or not.

    Attributes
    ----------
    stored:
        The collection as it was when it became known.
    indexes:
        Payload keys that are indexed.
    encoders:
        Names of its encoders, by modality.
    collection:
        Set once it is loaded.
    failure:
        Why it could not be loaded, if so.
    done, total:
        Items loaded so far, and of all; zeros before loading began.
    """

    stored: CollectionRecord
    indexes: list[str]
    encoders: dict[str, str]
    collection: Collection | None = None
    failure: str | None = None
    done: int = 0
    total: int = 0

    @property
    def record(self) -> CollectionRecord:
        """The collection as it is now."""
        return self.stored if self.collection is None else self.collection.record

    def loaded(self) -> Collection:
        """The collection; CollectionLoadingError or CollectionFailedError if it cannot be used."""
        if self.collection is not None:
            return self.collection
        name = self.record.name
        if self.failure is not None:
            raise CollectionFailedError(f"collection {name!r} could not be loaded; the server's log says why")
        raise CollectionLoadingError(f"collection {name!r} is being loaded: {self.done} of {self.total or '?'} items")


class Catalog:
    """The models and collections of one store.

    Parameters
    ----------
    store:
        Its collections are known at once, and loaded by `start_loading`.
    settings, encoders:
        The server's encoders, and limits on what they are given.
    followers:
        Told of the collections that are loaded, and of all that becomes of them.
    """

    def __init__(self, store: Store, settings: Settings, encoders: Encoders, followers: Followers = NOBODY) -> None:
        self._store = store
        self._settings = settings
        self._followers = followers
        self.encoders = encoders
        self._changing = threading.Lock()
        self._traits = KnownTraits(store)
        self._entries = {record.name: self._entry(record) for record in store.collections()}
        self._aliases = store.aliases.all()  # replaced, and never written to
        self._stopping = threading.Event()
        self._loader: threading.Thread | None = None

    # -- start and end ---------------------------------------------------------------------------------------------

    def adopt(self, model: str, file: bytes, collection: str) -> None:
        """Store a model and create a collection with it, unless that exists with the same model file. Before loading.

        Raises
        ------
        DefaultModelError
            The collection exists with another model, or the name belongs to another model that is in use.
        ModelFileError
            The file is no usable model.
        """
        collection = self.own_name(collection)
        entry = self._entries.get(collection)
        try:
            if entry is not None and entry.record.model != model:
                raise DefaultModelError(
                    f"collection {collection!r} has model {entry.record.model!r}, not {model!r}: start without a "
                    "model, or choose another data directory or default collection"
                )
            self.put_model(model, file)
            self.create_collection(collection, model)
        except RequestError as error:
            raise DefaultModelError(f"{error}; give the file another name, or choose another data directory") from None

    def start_loading(self) -> None:
        """Load all collections in a thread of its own."""
        waiting = [entry for entry in self._entries.values() if entry.collection is None]
        self._loader = threading.Thread(target=self._load_all, args=(waiting,), name="ccq-load", daemon=True)
        self._loader.start()

    def stop(self) -> None:
        """End loading."""
        self._stopping.set()
        if self._loader is not None:
            self._loader.join()

    def check_ready(self) -> None:
        """Raise NotReadyError unless every collection is loaded; names those that are not, and how far they are."""
        faults = []
        for entry in list(self._entries.values()):
            try:
                entry.loaded()
            except ServiceError as error:
                faults.append(Fault(f"/collections/{entry.record.name}", error.detail))
        if faults:
            raise NotReadyError("; ".join(fault.detail for fault in faults), faults)

    # -- collections -----------------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """All collections, by name."""
        return [entry for _, entry in sorted(self._entries.items())]

    def entry(self, name: str) -> Entry:
        """One collection, loaded or not, by its own name or by an alias; UnknownCollectionError if there is none."""
        entry = self._entries.get(self.own_name(name))
        if entry is None:
            raise UnknownCollectionError(name, sorted((*self._entries, *self._aliases)))
        return entry

    def same_entry(self, name: str, number: int | None) -> Entry:
        """A collection that was there before; UnknownCollectionError also if another has its name now.

        `number`: its own; None where that was not written down.
        """
        entry = self.entry(name)
        if number not in (None, entry.record.number):
            raise UnknownCollectionError(name)
        return entry

    def collection(self, name: str) -> Collection:
        """One collection, loaded; raises what `entry` and `Entry.loaded` raise. Quick: no lock, no disk."""
        return self.entry(name).loaded()

    def load(self, name: str) -> Collection:
        """One collection, loaded at once, for programs that need no other; raises what reading it raises."""
        entry = self.entry(name)
        if entry.collection is None:
            self._load(entry)
        return entry.loaded()

    def create_collection(
        self,
        name: str,
        model: str,
        indexes: Sequence[str] | None = None,
        keep: str | None = None,
        encoders: Mapping[str, str] | None = None,
    ) -> tuple[Entry, bool]:
        """The collection, and whether it is new. One that could not be loaded is loaded again.

        Parameters
        ----------
        indexes:
            Payload keys to index, and no others; None leaves them as they are.
        keep:
            How features are kept.
        encoders:
            Names of encoders by modality, and no others; None leaves them as they are.

        Raises
        ------
        UnknownModelError, CollectionConflictError, AliasConflictError, UnknownEncoderError, EncoderMismatchError
        """
        if encoders:
            check_fit(encoders, self.encoders, self.model(model)[1].modalities)
        with self._changing:
            record, new = self._store.create_collection(name, model, indexes or (), keep, encoders)
            entry = self._entries.get(name)
            if entry is None or entry.failure is not None:
                entry = self._entries[name] = self._entry(record)
                try:
                    self._provide(entry, self._collection_of(record))
                except BaseException as error:  # the store has it already: it can be deleted, or created once more
                    entry.failure = str(error)
                    raise
            if indexes is not None and self._store.index_keys(record, indexes):
                entry.indexes = self._store.indexed_keys(record)
            if encoders is not None and dict(encoders) != entry.encoders:
                self._store.set_encoders(record, encoders)
                entry.encoders = self._store.encoders(record)
                if entry.collection is not None:
                    self._provide(entry, entry.collection)
            return entry, new

    def _entry(self, record: CollectionRecord) -> Entry:
        return Entry(record, self._store.indexed_keys(record), self._store.encoders(record))

    def _provide(self, entry: Entry, collection: Collection) -> None:
        """Give a collection its encoders, and put it to use."""
        dims = collection.view.coder.model.dims
        collection.encoders = bind(entry.encoders, self.encoders, dims, self._settings)
        if entry.collection is not collection:
            entry.collection = collection
            self._followers.replaced(collection.record)

    def drop_collection(self, name: str) -> None:
        """Delete a collection with all its items.

        Raises
        ------
        UnknownCollectionError
            There is none of this name.
        AliasConflictError
            The name is an alias, or an alias leads to the collection.
        """
        with self._changing:
            if name in self._aliases:
                means = self._aliases[name]
                raise AliasConflictError(f"expected a collection to delete, got {name!r}, an alias of {means!r}")
            record = self.entry(name).record
            self._store.drop_collection(record)
            del self._entries[name]
            self._followers.dropped(record)

    def check_reencoding(self, name: str, model: str) -> CollectionRecord:
        """Whether a collection can be encoded anew by a model, as far as can be told before: the collection as it is.

        Raises
        ------
        ReencodeError, UnknownModelError
            It cannot.
        UnknownCollectionError, CollectionLoadingError, CollectionFailedError
            As from `collection`.
        """
        collection = self.collection(name)
        _, traits = self.model(model)
        kept_for(collection, model, {name: modality["dim"] for name, modality in traits.modalities.items()})
        return collection.record

    def reencode(
        self, collection: Collection, model: str, progress: Reencoding, check: Callable[[], None]
    ) -> Reencoded:
        """Encode a collection anew by another model; see `service.reencoding`, also for what it raises."""
        return reencode(collection, self._store, model, self._model_of, progress, check)

    # -- aliases ---------------------------------------------------------------------------------------------------

    def own_name(self, name: str) -> str:
        """The name of the collection that a name means: an alias the one that it leads to, any other name itself."""
        return self._aliases.get(name, name)

    def aliases(self) -> Mapping[str, str]:
        """All aliases, by name, and the names of their collections."""
        return self._aliases

    def put_alias(self, alias: str, collection: str) -> bool:
        """Let an alias lead to a collection; whether it is new. UnknownCollectionError, or AliasConflictError."""
        with self._changing:
            new = self._store.aliases.put(alias, collection)
            self._aliases = self._store.aliases.all()
            return new

    def delete_alias(self, alias: str) -> None:
        """Delete an alias; UnknownAliasError if there is none of this name."""
        with self._changing:
            self._store.aliases.delete(alias)
            self._aliases = self._store.aliases.all()

    # -- models ----------------------------------------------------------------------------------------------------

    def models(self) -> list[tuple[ModelRecord, Traits]]:
        """All models, by name."""
        found = []
        for record in self._store.models():
            with suppress(UnknownModelError):  # deleted meanwhile
                found.append(self._traits.find(record))
        return found

    def model(self, name: str) -> tuple[ModelRecord, Traits]:
        """One model; UnknownModelError if there is none of this name."""
        return self._traits.find(self._store.model(name))

    def model_file(self, name: str) -> bytes:
        """A model's file; UnknownModelError if there is none of this name."""
        return self._store.model_file(name)[1]

    def put_model(self, name: str, file: bytes) -> tuple[ModelRecord, Traits, bool]:
        """Store a model file, once it is known to be one: the model, and whether the name is new.

        Raises
        ------
        ModelFileError
            It is no usable model.
        ModelInUseError
            A collection uses another file under this name.
        """
        traits = Traits.of(CCQ.from_bytes(file))
        with self._changing:
            new = self._store.put_model(name, file) == "created"
            record = self._store.model(name)
        self._traits.add(record, traits)
        return record, traits, new

    def check_unused(self, name: str) -> None:
        """Raise ModelInUseError if a collection uses a model of this name: for what will put another file there."""
        users = [entry.record.name for entry in self.entries() if entry.record.model == name]
        if users:
            used = f"used by collection {', '.join(map(repr, users))}"
            raise ModelInUseError(f"model {name!r} cannot be replaced by another file: {used}; choose another name")

    def delete_model(self, name: str) -> None:
        """Delete a model; UnknownModelError or ModelInUseError."""
        with self._changing:
            self._store.delete_model(name)

    def _model_of(self, record: CollectionRecord) -> CCQ:
        """A collection's model, shared with those that use it already: while one does, it cannot be replaced."""
        for entry in self.entries():
            if entry.collection is not None and (coder := entry.collection.view.coder).record.model == record.model:
                return coder.model
        return stored_model(record.model, self._store.model_file(record.model)[1])

    # -- loading ---------------------------------------------------------------------------------------------------

    def _load_all(self, waiting: list[Entry]) -> None:
        for entry in waiting:
            try:
                self._load(entry)
            except _Stopped:
                return
            except UnknownCollectionError:
                log.info("collection %r was deleted before it was loaded", entry.record.name)
            except ServiceError as error:
                log.error("collection %r could not be loaded: %s (%s)", entry.record.name, error, error.__cause__)  # noqa: TRY400
                entry.failure = str(error)
            except Exception as error:
                log.exception("collection %r could not be loaded", entry.record.name)
                entry.failure = str(error)

    def _collection_of(self, record: CollectionRecord, progress: Loading = lambda _done, _all: None) -> Collection:
        return Collection(self._store, record, self._model_of(record), progress, self._followers)

    def _load(self, entry: Entry) -> None:
        def progress(done: int, total: int) -> None:
            entry.done, entry.total = done, total
            if self._stopping.is_set():
                raise _Stopped

        progress(0, 0)
        collection = self._collection_of(entry.record, progress)
        with self._changing:  # its encoders may be others meanwhile
            self._provide(entry, collection)
