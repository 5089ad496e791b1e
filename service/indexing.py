"""Indexing items: from the body of a request, or from arrays that are read from files. Both go one way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from service.body import parse
from service.collection import Collection
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
from service.store.interface import Change, NewItem
from service.writing import Asked, Written, write


@dataclass(frozen=True)
class Prepared:
    """Items that are checked and encoded, to be stored.

    Attributes
    ----------
    versions:
        By id: which version the stored item must have.
    start:
        A reading of `time.perf_counter`.
    """

    items: Sequence[NewItem]
    codes: Codes
    versions: Mapping[str, int]
    start: float


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
    codes:
        Codes that a collection of the same model gave.
    locate:
        From an item's number to the place that messages name.
    """

    ids: Sequence[str]
    payloads: Sequence[bytes | None]
    features: Mapping[str, NDArray[Any]]
    codes: Codes | None
    locate: Callable[[int], Location]


def prepare_items(collection: Collection, body: bytes, settings: Settings) -> Prepared:
    """Check and encode the items of an `IndexRequest`.

    Raises
    ------
    RequestError
        Any of those about bodies, features and ids.
    """
    start = time.perf_counter()
    request = parse(body, IndexRequest, items=settings.max_batch_items)
    items = request.items
    _refuse_duplicates([item.id for item in items], _of_request)
    payloads = dump_payloads(
        [item.payload for item in items], lambda i: ("items", i, "payload"), body, settings.max_payload_bytes
    )
    coded = items[0].codes is not None
    for i, item in enumerate(items):
        if (item.codes is not None) != coded:
            raise _refused(("items", i), "expected codes in every item of a request, or in none")
        if item.features is None and not coded:
            raise _refused(("items", i, "features"), "missing: expected feature vectors by modality, or codes")
    codes = vectors = None
    if coded:
        check_model(collection, request.model_checksum)
        codes = read_codes([item.codes or {} for item in items], _codes_of_request, collection.layout)
    if any(item.features is not None for item in items):
        vectors = read_vectors(
            [item.features or {} for item in items],
            lambda i: ("items", i, "features"),
            collection.model,
            collection.record.model,
        )
    versions = {item.id: item.if_version for item in items if item.if_version is not None}
    return _prepared(
        collection, [item.id for item in items], payloads, vectors, codes, _codes_of_request, versions, start
    )


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
    vectors = None
    if arrays.features:
        given = arrays.features
        vectors = vectors_of(given, arrays.locate, collection.model, collection.record.model)
    return _prepared(collection, arrays.ids, payloads, vectors, arrays.codes, arrays.locate, {}, start)


def store_items(collection: Collection, prepared: Prepared, asked: Asked | None = None) -> Written:
    """Store items, all or none; an `IndexReply`.

    Raises
    ------
    UnknownCollectionError
        The collection was deleted meanwhile.
    VersionMismatchError, KeyReusedError
        Nothing was changed.
    UnavailableError
        From the store: nothing was changed.
    """

    def reply(_: Change) -> dict[str, Any]:
        return {"indexed": len(prepared.items), "took_ms": took_ms(prepared.start)}

    try:
        return write(
            lambda terms: collection.upsert(prepared.items, prepared.codes, terms), reply, prepared.versions, asked
        )
    except VersionMismatchError as error:
        i = next(i for i, item in enumerate(prepared.items) if item.id == error.item_id)
        expected = prepared.versions[error.item_id]
        fault = Fault.at(("items", i, "if_version"), error.detail)
        raise VersionMismatchError(error.item_id, expected, error.current, [fault]) from None


def _prepared(
    collection: Collection,
    ids: Sequence[str],
    payloads: Sequence[bytes | None],
    vectors: Vectors | None,
    codes: Codes | None,
    locate: Callable[[int], Location],
    versions: Mapping[str, int],
    start: float,
) -> Prepared:
    if codes is None:
        if vectors is None:
            raise _refused(locate(0), "expected features or codes, got neither")
        codes = encode_items(vectors, collection.model)
    else:
        check_codes(collection, codes, vectors, locate)
    if collection.kept is None or vectors is None:
        new = [NewItem(*item) for item in zip(ids, payloads, strict=True)]
    else:
        kept = collection.kept.pack(vectors.features)
        new = [NewItem(*item) for item in zip(ids, payloads, kept, strict=True)]
    return Prepared(new, codes, versions, start)


def _of_request(i: int) -> Location:
    return ("items", i)


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
