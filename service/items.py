"""Indexing, deleting and reading items: what the routes do, without HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from service.body import load_payload_body, parse
from service.collection import Collection
from service.errors import Fault, InvalidRequestError, UnknownItemError, VersionMismatchError
from service.filters import compile_filter, has_gap
from service.payloads import dump_payloads
from service.places import shorten
from service.responses import stored_payload
from service.schemas.items import DeleteRequest
from service.settings import Settings
from service.store.interface import Change, ItemRow, Terms
from service.tables import View
from service.writing import Asked, Written, write

_BYTES_PER_ITEM = 100  # what is neither id nor payload


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


def _unknown(collection: Collection, item_id: str) -> UnknownItemError:
    name = collection.record.name
    return UnknownItemError(item_id, name, [Fault("{id}", f"no item {shorten(item_id)}")])
