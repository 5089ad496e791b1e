"""A collection gets another model: its items are encoded anew while it is searched and written to.

Codes of the new model are made from kept features and staged beside the old ones, in order of insertion, pass after
pass. They are loaded into tables of their own. One write stages the last few and puts all in the place of the old; with
it searches and writes go over to the new model, each of them as a whole.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ccq_core import CCQ
from service.collection import Collection
from service.encoding import encode_items
from service.errors import CoreInputError, Fault, ReencodeError, UnavailableError, UnknownCollectionError
from service.features import Vectors
from service.kept import KeptLayout
from service.records import Codes
from service.store.interface import CollectionRecord, Seqs, Staging, Store
from service.tables import Coder, Tables

log = logging.getLogger(__name__)

_SLICE = 2048
_LAST = 256  # so many items may be left for the write that changes the model: other writes wait for their encoding
_PASSES = 8  # where so many slices did not do, items come as fast as they are encoded: twice as many may be left

Progress = Callable[[str, int, int], None]
"""Called with ``encode`` or ``load``, the number of items for which that is done, and of all."""


@dataclass(frozen=True)
class Reencoded:
    """What was done: the number of items when it was, and the names of the models before and after."""

    items: int
    before: str
    after: str
    seconds: float


def reencode(
    collection: Collection,
    store: Store,
    model: str,
    model_of: Callable[[CollectionRecord], CCQ],
    progress: Progress = lambda _phase, _done, _total: None,
    check: Callable[[], None] = lambda: None,
) -> Reencoded:
    """Encode a collection anew by another model. All or nothing; searches and writes go on meanwhile.

    Parameters
    ----------
    collection, store:
        The collection, and where it is.
    model, model_of:
        Name of the model, and what loads it for the collection as it is to be.
    progress, check:
        Called now and then; what `check` raises ends the work.

    Raises
    ------
    ReencodeError
        The collection keeps no features, has that model already, or the model cannot encode what is kept.
    ReencodingError
        It is being encoded with another model already.
    UnknownModelError, UnknownCollectionError, UnavailableError
        From the store.
    """
    began = time.perf_counter()
    before = collection.record
    staging = store.stage(before, model)
    try:
        coder = Coder.of(staging.record, model_of(staging.record))
        kept = kept_for(collection, model, coder.model.dims)
        items = _Reencoding(collection, staging, coder, kept, progress, check).run()
    except BaseException:
        with suppress(UnavailableError, UnknownCollectionError):  # the store lets go of it at its next start
            staging.abandon()
        raise
    took = time.perf_counter() - began
    log.info("collection %r: %d items encoded with model %r, %.1f s", before.name, items, model, took)
    return Reencoded(items, before.model, model, round(took, 3))


def kept_for(collection: Collection, model: str, dims: Mapping[str, int]) -> KeptLayout:
    """How the features are kept that a model of these dimensions is to encode.

    Raises
    ------
    ReencodeError
        None are kept, they are others, or the collection has that model already.
    """
    record, kept = collection.record, collection.kept
    if kept is None:
        raise _refused(
            f"collection {record.name!r} keeps no features to encode anew; make another one, with `keep`, and "
            "index the items into it"
        )
    if record.model == model:
        raise _refused(f"collection {record.name!r} has model {model!r} already")
    if list(dims.items()) != list(kept.dims.items()):
        needs, has = (", ".join(f"{name} ({dim})" for name, dim in known.items()) for known in (dims, kept.dims))
        raise _refused(
            f"expected a model of the features that collection {record.name!r} keeps, {has} in this order; {model!r} "
            f"is of {needs}"
        )
    return kept


def _refused(reason: str) -> ReencodeError:
    return ReencodeError.from_faults([Fault.at(("model",), reason)])


@dataclass
class _Reencoding:
    collection: Collection
    staging: Staging
    coder: Coder
    kept: KeptLayout
    progress: Progress
    check: Callable[[], None]
    done: int = 0

    def run(self) -> int:
        """The number of items in the end."""
        total = self.collection.view.items
        while self.done < total and self._stage_some(total) == _SLICE:
            pass
        gone = self.staging.gone()  # first: what is deleted later is told when all is done
        tables = Tables.load(self.coder, self.staging.codes(), gone, self.collection.view.items, self._loaded)
        return self._finish(tables, gone)

    def _finish(self, tables: Tables, gone: Seqs) -> int:
        """Stage what comes until little is left, and change the model."""
        most, passes = _LAST, 0
        while True:
            some = self._stage_some(self.collection.view.items, tables)
            passes += 1
            most *= 2 if passes % _PASSES == 0 else 1
            if some <= most and self.collection.adopt(self.staging, most, tables, gone, self._encode) is not None:
                return self.collection.view.items

    def _stage_some(self, total: int, tables: Tables | None = None) -> int:
        """Stage the next items, and put them into tables that have the others; how many there were."""
        self.check()
        seqs, kept = self.staging.rest(_SLICE)
        if len(seqs):
            left, records = self.staging.add(seqs, self.coder.layout.pack(self._encode(kept, seqs)))
            if tables is not None and len(left):
                tables.append_records(left, records)
            self.done += len(seqs)
        self.progress("encode", min(self.done, total), total)
        return len(seqs)

    def _loaded(self, done: int, total: int) -> None:
        self.check()
        self.progress("load", done, total)

    def _encode(self, kept: Sequence[bytes], seqs: Seqs) -> Codes:
        vectors = Vectors(self.kept.unpack(kept), lambda row: (f"item number {seqs[row]}",), self.coder.record.model)
        try:
            return encode_items(vectors, self.coder.model)
        except CoreInputError as error:
            raise ReencodeError(f"collection {self.coder.record.name!r}: {error.detail}") from error
