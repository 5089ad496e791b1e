"""Indexing, deleting and reading items: what the routes do, without HTTP."""

from __future__ import annotations

import base64
import binascii
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.body import parse
from service.collection import Collection, View
from service.encoding import encode_items
from service.errors import DuplicateIdError, Fault, InvalidRequestError, UnknownItemError
from service.features import read_vectors
from service.filters import compile_filter, has_gap
from service.payloads import dump_payloads
from service.places import pointer, shorten
from service.records import Codes
from service.responses import stored_payload
from service.schemas.items import DeleteRequest, IndexRequest
from service.settings import Settings
from service.store.interface import ItemRow, NewItem

_BYTES_PER_ITEM = 100  # what is neither id nor payload


@dataclass(frozen=True)
class Prepared:
    """Items that are checked and encoded, to be stored. `start`: a reading of `time.perf_counter`."""

    items: Sequence[NewItem]
    codes: Codes
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
    vectors = read_vectors(
        [item.features for item in items],
        lambda i: ("items", i, "features"),
        collection.model,
        collection.record.model,
    )
    codes = encode_items(vectors, collection.model)
    new = [NewItem(item.id, payload) for item, payload in zip(items, payloads, strict=True)]
    return Prepared(new, codes, start)


def store_items(collection: Collection, prepared: Prepared) -> dict[str, Any]:
    """Store items, all or none; an `IndexReply`.

    Raises
    ------
    UnknownCollectionError
        The collection was deleted meanwhile.
    UnavailableError
        From the store: nothing was changed.
    """
    collection.upsert(prepared.items, prepared.codes)
    return {"indexed": len(prepared.items), "took_ms": took_ms(prepared.start)}


def delete_items(collection: Collection, body: bytes, settings: Settings) -> dict[str, Any]:
    """Delete what a `DeleteRequest` names; raises what `prepare_items` and `store_items` raise."""
    start = time.perf_counter()
    request = parse(body, DeleteRequest, ids=settings.max_batch_items)
    if request.ids is not None:
        deleted = collection.delete_ids(list(dict.fromkeys(request.ids)))
    elif request.filter is not None and not has_gap(request.filter):
        matches = compile_filter(request.filter, body)
        deleted = collection.delete_where(matches.seqs)
    else:
        raise InvalidRequestError.from_faults(
            [
                Fault.at(
                    ("filter",),
                    "expected at least one condition in each filter, and one value in each list; to delete everything, "
                    "delete the collection",
                )
            ]
        )
    return {"deleted": deleted, "took_ms": took_ms(start)}


def delete_item(collection: Collection, item_id: str) -> None:
    """Delete one item; UnknownItemError if there is none of this id."""
    if not collection.delete_ids([item_id]):
        raise _unknown(collection, item_id)


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
    return {"id": row.id, "payload": stored_payload(row.id, row.payload), "databases": list(view.codes(row.seq))}


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
