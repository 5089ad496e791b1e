"""Indexing, deleting and reading items: what the routes do, without HTTP."""

from __future__ import annotations

import base64
import binascii
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from service.body import load_payload_body, parse
from service.collection import Collection, Encoded
from service.encoding import encode_items
from service.errors import DuplicateIdError, Fault, InvalidRequestError, UnknownItemError, VersionMismatchError
from service.features import Vectors, read_vectors
from service.filters import compile_filter, has_gap
from service.payloads import dump_payloads
from service.places import pointer, shorten
from service.responses import stored_payload
from service.schemas.items import DeleteRequest, IndexRequest
from service.settings import Settings
from service.store.interface import Change, ItemRow, ModelChanged, NewItem, Terms
from service.tables import View
from service.writing import Asked, Written, write

_BYTES_PER_ITEM = 100  # what is neither id nor payload


@dataclass(frozen=True)
class Prepared:
    """Items that are checked and encoded, to be stored.

    Attributes
    ----------
    vectors, encoded:
        Their features, and their codes.
    versions:
        By id: which version the stored item must have.
    start:
        A reading of `time.perf_counter`.
    """

    items: Sequence[NewItem]
    vectors: Vectors
    encoded: Encoded
    versions: Mapping[str, int]
    start: float


def prepare_items(collection: Collection, body: bytes, settings: Settings) -> Prepared:
    """Check and encode the items of an `IndexRequest`.

    Raises
    ------
    RequestError
        Any of those about bodies, features and ids.
    """
    start = time.perf_counter()
    items = parse(body, IndexRequest, items=settings.max_batch_items).items
    _refuse_duplicates([item.id for item in items])
    payloads = dump_payloads(
        [item.payload for item in items], lambda i: ("items", i, "payload"), body, settings.max_payload_bytes
    )
    coder = collection.view.coder
    vectors = read_vectors(
        [item.features for item in items],
        lambda i: ("items", i, "features"),
        coder.model,
        coder.record.model,
    )
    encoded = Encoded(encode_items(vectors, coder.model), coder)
    kept = [None] * len(items) if collection.kept is None else collection.kept.pack(vectors.features)
    new = [NewItem(item.id, *rest) for item, *rest in zip(items, payloads, kept, strict=True)]
    versions = {item.id: item.if_version for item in items if item.if_version is not None}
    return Prepared(new, vectors, encoded, versions, start)


def store_items(collection: Collection, prepared: Prepared, asked: Asked | None = None) -> Written:
    """Store items, all or none; an `IndexReply`. They are encoded again if the collection got another model meanwhile.

    Raises
    ------
    CoreInputError
        Features that its new model cannot map.
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
                coder = collection.view.coder
                encoded = Encoded(encode_items(prepared.vectors, coder.model), coder)

    try:
        return write(upsert, reply, prepared.versions, asked)
    except VersionMismatchError as error:
        i = next(i for i, item in enumerate(prepared.items) if item.id == error.item_id)
        expected = prepared.versions[error.item_id]
        fault = Fault.at(("items", i, "if_version"), error.detail)
        raise VersionMismatchError(error.item_id, expected, error.current, [fault]) from None


def delete_items(collection: Collection, body: bytes, settings: Settings, asked: Asked | None = None) -> Written:
    """Delete what a `DeleteRequest` names; raises what `prepare_items` and `store_items` raise."""
    start = time.perf_counter()
    request = parse(body, DeleteRequest, ids=settings.max_batch_items)

    def reply(change: Change | None) -> dict[str, Any]:
        return {"deleted": 0 if change is None else len(change.removed), "took_ms": took_ms(start)}

    if request.ids is not None:
        ids = list(dict.fromkeys(request.ids))
        return write(lambda terms: collection.delete_ids(ids, terms), reply, {}, asked)
    if request.filter is None or has_gap(request.filter):
        raise InvalidRequestError.from_faults(
            [
                Fault.at(
                    ("filter",),
                    "expected at least one condition in each filter, and one value in each list; to delete everything, "
                    "delete the collection",
                )
            ]
        )
    matches = compile_filter(request.filter, body)
    return write(lambda terms: collection.delete_where(matches.seqs, terms), reply, {}, asked)


def delete_item(collection: Collection, item_id: str, version: int | None = None) -> None:
    """Delete one item.

    Parameters
    ----------
    version:
        The version that it must have.

    Raises
    ------
    UnknownItemError
        There is none of this id.
    VersionMismatchError
        It has another version.
    """
    with _of_version(collection, item_id, version) as versions:
        change = collection.delete_ids([item_id], Terms(versions))
    if not len(change.removed):
        raise _unknown(collection, item_id)


def set_payload(
    collection: Collection,
    item_id: str,
    body: bytes,
    settings: Settings,
    version: int | None = None,
    asked: Asked | None = None,
) -> Written:
    """Replace the payload of an item by the body, an object or null; a `PayloadReply`.

    Raises what `delete_item` and `store_items` raise, and RequestError for a body that is no payload.
    """
    start = time.perf_counter()
    (payload,) = dump_payloads([load_payload_body(body)], lambda _: (), body, settings.max_payload_bytes)

    def reply(change: Change) -> dict[str, Any]:
        return {"id": item_id, "version": change.version, "took_ms": took_ms(start)}

    with _of_version(collection, item_id, version) as versions:
        return write(lambda terms: collection.set_payload(item_id, payload, terms), reply, versions, asked)


@contextmanager
def _of_version(collection: Collection, item_id: str, version: int | None) -> Iterator[dict[str, int]]:
    """What a write of one item has as `versions`; its errors are told as those of the path, or of If-Match."""
    try:
        yield {} if version is None else {item_id: version}
    except VersionMismatchError as error:
        if version is None or not error.current:
            raise _unknown(collection, item_id) from None
        raise VersionMismatchError(item_id, version, error.current, [Fault("If-Match", error.detail)]) from None
    except UnknownItemError:
        raise _unknown(collection, item_id) from None


def get_item(collection: Collection, item_id: str) -> dict[str, Any]:
    """One item as a `StoredItem`; UnknownItemError if there is none of this id."""
    with collection.read() as (view, snapshot):
        row = snapshot.item(item_id)
    if row is None:
        raise _unknown(collection, item_id)
    return _stored(view, row)


def list_items(collection: Collection, limit: int, cursor: str | None, max_bytes: int) -> dict[str, Any]:
    """An `ItemPage`: of `limit` items, or of fewer where these are long, but of one at least if there is one.

    Raises
    ------
    InvalidRequestError
        The cursor is not one that a page gave.
    StorageError
        A payload is damaged.
    """
    after = 0 if cursor is None else _from_cursor(cursor)
    rows: list[ItemRow] = []
    size = 0
    with collection.read() as (view, snapshot):
        for row in snapshot.page(after, limit + 1):
            size += reply_bytes(row.id, row.payload)
            if rows and (len(rows) == limit or size > max_bytes):
                next_cursor = _to_cursor(rows[-1].seq)
                break
            rows.append(row)
        else:
            next_cursor = None
    return {"items": [_stored(view, row) for row in rows], "next_cursor": next_cursor}


def reply_bytes(item_id: str, payload: bytes | None) -> int:
    """About how many bytes of a reply an item takes."""
    return _BYTES_PER_ITEM + len(item_id) + len(payload or b"")


def took_ms(start: float) -> float:
    """Milliseconds since a reading of `time.perf_counter`, to a microsecond."""
    return round((time.perf_counter() - start) * 1e3, 3)


def _stored(view: View, row: ItemRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "version": row.version,
        "payload": stored_payload(row.id, row.payload),
        "databases": list(view.codes(row.seq)),
    }


def _refuse_duplicates(ids: list[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for i, item_id in enumerate(ids):
        if item_id in first:
            places = (("items", first[item_id], "id"), ("items", i, "id"))
            detail = f"items[{first[item_id]}].id and items[{i}].id: the same id twice, {shorten(item_id)}"
            raise DuplicateIdError(detail, [Fault(pointer(place), detail) for place in places])
        first[item_id] = i


def _unknown(collection: Collection, item_id: str) -> UnknownItemError:
    name = collection.record.name
    return UnknownItemError(item_id, name, [Fault("{id}", f"no item {shorten(item_id)}")])


def _to_cursor(seq: int) -> str:
    return base64.urlsafe_b64encode(struct.pack(">q", seq)).decode().rstrip("=")


def _from_cursor(cursor: str) -> int:
    try:
        (seq,) = struct.unpack(">q", base64.b64decode(cursor + "=", altchars=b"-_", validate=True))
    except (binascii.Error, struct.error, ValueError):
        raise InvalidRequestError.from_faults(
            [Fault("?cursor", f"cursor: expected the next_cursor of a page, got {shorten(cursor)}")]
        ) from None
    return int(seq)
