"""Indexing items: from the body of a request, or from arrays that are read from files. Both go one way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from service.body import parse
from service.collection import Collection, Encoded
from service.encoders.raw import encode_raw
from service.encoding import encode_items
from service.errors import DuplicateIdError, Fault, InvalidRequestError, VersionMismatchError
from service.features import Vectors, read_vectors, vectors_of
from service.givencodes import check_codes, check_model, read_codes
from service.items import took_ms
from service.payloads import dump_lines, dump_payloads
from service.places import Location, path, pointer, shorten
from service.records import Codes
from service.schemas.items import IndexRequest
from service.schemas.names import MAX_ID_BYTES, check_id
from service.settings import Settings
from service.store.interface import Change, ModelChanged, NewItem, Terms
from service.tables import Coder
from service.writing import Asked, Written, write


@dataclass(frozen=True)
class Prepared:
    """Items that are checked and encoded, to be stored.

    Attributes
    ----------
    vectors, encoded:
        Their features, if they have any, and their codes.
    checksum:
        Of the model that made the codes, if these were given.
    versions:
        By id: which version the stored item must have.
    start:
        A reading of `time.perf_counter`.
    """

    items: Sequence[NewItem]
    vectors: Vectors | None
    encoded: Encoded
    checksum: str | None
    versions: Mapping[str, int]
    start: float

    def anew(self, collection: Collection) -> Encoded:
        """Their codes by the model that the collection has by now; raises what `prepare_items` raises."""
        coder = collection.view.coder
        if self.checksum is None and self.vectors is not None:
            return Encoded(encode_items(self.vectors, coder.model), coder)
        check_model(collection, coder, self.checksum)
        return Encoded(self.encoded.codes, coder)


@dataclass(frozen=True)
class Arrays:
    """n items as files have them.

    Attributes
    ----------
    ids:
        Of each.
    payloads:
        JSON of each, or None.
    features:
        (n, P) numbers by modality, with rows of NaN for absent modalities. Without `codes`, each item has some; with
        them, they are only kept, where the collection keeps features.
    codes, checksum:
        Codes that a collection of the same model gave, and the checksum of that.
    locate:
        From an item's number to the place that messages name.
    """

    ids: Sequence[str]
    payloads: Sequence[bytes | None]
    features: Mapping[str, NDArray[Any]]
    codes: Codes | None
    checksum: str | None
    locate: Callable[[int], Location]


def prepare_items(collection: Collection, body: bytes, settings: Settings) -> Prepared:
    """Check and encode the items of an `IndexRequest`.

    Raises
    ------
    RequestError
        Any of those about bodies, features and ids.
    EncoderFailedError, RequestTimeoutError
        From an encoder.
    """
    start = time.perf_counter()
    request = parse(body, IndexRequest, items=settings.max_batch_items)
    items = request.items
    _refuse_duplicates([item.id for item in items], _of_request)
    payloads = dump_payloads(
        [item.payload for item in items], lambda i: ("items", i, "payload"), body, settings.max_payload_bytes
    )
    coder = collection.view.coder
    coded = items[0].codes is not None
    for i, item in enumerate(items):
        if (item.codes is not None) != coded:
            raise _refused(("items", i), "expected codes in every item of a request, or in none")
        if item.features is None and not coded:
            raise _refused(("items", i, "features"), "missing: expected feature vectors by modality, or codes")
    codes = vectors = None
    if coded:
        check_model(collection, coder, request.model_checksum)
        codes = read_codes([item.codes or {} for item in items], _codes_of_request, coder.layout)
    if any(item.features is not None for item in items):
        features = encode_raw([item.features or {} for item in items], _features_of_request, collection.encoders)
        vectors = read_vectors(features, _features_of_request, coder.model, coder.record.model)
    encoded = _encoded(collection, coder, vectors, codes, _codes_of_request)
    new = _items(collection, [item.id for item in items], payloads, vectors)
    checksum = request.model_checksum if coded else None
    versions = {item.id: item.if_version for item in items if item.if_version is not None}
    return Prepared(new, vectors, encoded, checksum, versions, start)


def prepare_arrays(collection: Collection, arrays: Arrays, settings: Settings) -> Prepared:
    """Check and encode items that are arrays, as `prepare_items` does those of a request; raises what that raises."""
    start = time.perf_counter()
    for i, item_id in enumerate(arrays.ids):
        if 0 < len(item_id) <= MAX_ID_BYTES // 4:  # no character takes more than four bytes
            continue
        try:
            check_id(item_id)
        except ValueError as error:
            raise _refused((*arrays.locate(i), "id"), str(error)) from None
    _refuse_duplicates(arrays.ids, arrays.locate)
    payloads = dump_lines(arrays.payloads, lambda i: (*arrays.locate(i), "payload"), settings.max_payload_bytes)
    coder = collection.view.coder
    if arrays.codes is not None:
        check_model(collection, coder, arrays.checksum)
    vectors = None
    if arrays.features:
        vectors = vectors_of(arrays.features, arrays.locate, coder.model, coder.record.model)
    encoded = _encoded(collection, coder, vectors, arrays.codes, arrays.locate)
    new = _items(collection, arrays.ids, payloads, vectors)
    return Prepared(new, vectors, encoded, arrays.checksum, {}, start)


def store_items(collection: Collection, prepared: Prepared, asked: Asked | None = None) -> Written:
    """Store items, all or none; an `IndexReply`. They are encoded again if the collection got another model meanwhile.

    Raises
    ------
    CoreInputError
        Features that its new model cannot map.
    CollectionConflictError
        Codes that are not of its new model.
    UnknownCollectionError
        The collection was deleted meanwhile.
    VersionMismatchError, KeyReusedError
        Nothing was changed.
    UnavailableError
        From the store: nothing was changed.
    """

    def reply(_: Change) -> dict[str, Any]:
        return {"indexed": len(prepared.items), "took_ms": took_ms(prepared.start)}

    encoded = prepared.encoded

    def upsert(terms: Terms) -> Change:
        nonlocal encoded
        while True:
            try:
                return collection.upsert(prepared.items, encoded, terms)
            except ModelChanged:
                encoded = prepared.anew(collection)

    try:
        return write(upsert, reply, prepared.versions, asked)
    except VersionMismatchError as error:
        i = next(i for i, item in enumerate(prepared.items) if item.id == error.item_id)
        expected = prepared.versions[error.item_id]
        fault = Fault.at(("items", i, "if_version"), error.detail)
        raise VersionMismatchError(error.item_id, expected, error.current, [fault]) from None


def _encoded(
    collection: Collection,
    coder: Coder,
    vectors: Vectors | None,
    codes: Codes | None,
    locate: Callable[[int], Location],
) -> Encoded:
    """The codes of items: those that were given, or else those of their features."""
    if codes is not None:
        check_codes(collection, coder, codes, vectors, locate)
        return Encoded(codes, coder)
    if vectors is None:
        raise _refused(locate(0), "expected features or codes, got neither")
    return Encoded(encode_items(vectors, coder.model), coder)


def _items(
    collection: Collection, ids: Sequence[str], payloads: Sequence[bytes | None], vectors: Vectors | None
) -> list[NewItem]:
    if collection.kept is None or vectors is None:
        return [NewItem(*item) for item in zip(ids, payloads, strict=True)]
    kept = collection.kept.pack(vectors.features)
    return [NewItem(*item) for item in zip(ids, payloads, kept, strict=True)]


def _of_request(i: int) -> Location:
    return ("items", i)


def _features_of_request(i: int) -> Location:
    return ("items", i, "features")


def _codes_of_request(i: int) -> Location:
    return ("items", i, "codes")


def _refused(place: Location, reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault.at(place, reason)])


def _refuse_duplicates(ids: Sequence[str], locate: Callable[[int], Location]) -> None:
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for i, item_id in enumerate(ids):
        if item_id in first:
            places = ((*locate(first[item_id]), "id"), (*locate(i), "id"))
            names = " and ".join(path(place) for place in places)
            detail = f"{names}: the same id twice, {shorten(item_id)}"
            raise DuplicateIdError(detail, [Fault(pointer(place), detail) for place in places])
        first[item_id] = i
