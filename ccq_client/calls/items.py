"""Requests about the items of one collection; `root` is the collection's path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union
from urllib.parse import urlencode
from uuid import uuid4

from ccq_client.arrays import decode
from ccq_client.calls.call import Call, named, nothing, segment, to_json
from ccq_client.errors import InputError
from ccq_client.options import Filter
from ccq_client.results import Deleted, Facet, Facets, Item, ItemPage, Payload, PayloadSet, make

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ccq_client.limits import Limits

Ids = Union[Sequence[str | int], "NDArray[Any]"]
"""Ids of items; an integer means its decimal string."""


def root(collection: str) -> str:
    """The path of a collection."""
    return f"/collections/{named(collection)}"


def databases(root: str) -> Call[dict[str, int]]:
    """How many items each database of a collection has; nothing until it is loaded."""
    return Call("GET", root, lambda data: dict(data["databases"] or {}))


def once(key: str | None) -> dict[str, str]:
    """The header that makes a write be done once however often it is sent: the key that is given, or a new one."""
    return {"Idempotency-Key": key or uuid4().hex}


def part_key(key: str | None, start: int) -> str | None:
    """The key of the request that begins at this row, of a write that takes several; the first has the one given."""
    return f"{key}-{start}" if key and start else key


def index(root: str, body: bytes, key: str | None) -> Call[int]:
    """Items as JSON; gives how many there were."""
    return Call("POST", f"{root}/index", _indexed, body, headers=once(key))


def get(root: str, item_id: str | int) -> Call[Item]:
    """One item."""
    return Call("GET", _item_path(root, item_id), _item)


def page(
    root: str, filter_: Filter | None, limit: int, cursor: str | None, with_codes: bool, with_features: bool
) -> Call[ItemPage]:
    """Some items in order of insertion, of those that match if there is a filter."""
    given: dict[str, Any] = {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}
    if filter_ is None:
        given |= {"with_codes": "true"} if with_codes else {}
        given |= {"with_features": "true"} if with_features else {}
        return Call("GET", f"{root}/items?{urlencode(given)}", _item_page)
    given |= {"filter": filter_, "with_codes": with_codes, "with_features": with_features}
    return Call("POST", f"{root}/items/list", _item_page, to_json(given))


def count(root: str, filter_: Filter | None) -> Call[int]:
    """How many items there are, or match."""
    body = {"limit": 0} if filter_ is None else {"limit": 0, "filter": filter_}
    return Call("POST", f"{root}/items/list", _total, to_json(body))


def deletes(root: str, ids: Sequence[str], limits: Limits | None, key: str | None) -> Iterator[Call[Deleted]]:
    """Delete by ids: as many requests as the service's limits make of so many; without limits, one."""
    if limits is None:
        yield _delete(root, {"ids": ids}, key)
        return
    # An id of n bytes takes at most 6 n as JSON, where it is of control characters.
    longest = max((len(item_id.encode()) for item_id in ids), default=0) * 6 + 3
    most = max(1, min(limits.max_batch_items, (limits.max_body_bytes - 64) // longest))
    for start in range(0, len(ids), most):
        yield _delete(root, {"ids": ids[start : start + most]}, part_key(key, start))


def delete_one(root: str, item_id: str, if_match: int) -> Call[None]:
    """Delete an item of this version."""
    return Call("DELETE", _item_path(root, item_id), nothing, headers={"If-Match": f'"{if_match}"'})


def delete_matching(root: str, filter_: Filter | None, key: str | None) -> Call[Deleted]:
    """Delete by a filter."""
    return _delete(root, {"filter": filter_}, key)


def set_payload(
    root: str, item_id: str | int, payload: Payload, if_match: int | None, key: str | None
) -> Call[PayloadSet]:
    """Replace the payload of an item."""
    headers = once(key) if if_match is None else {**once(key), "If-Match": f'"{if_match}"'}
    path = f"{_item_path(root, item_id)}/payload"
    return Call("PUT", path, lambda data: make(PayloadSet, data), to_json(payload, "the payload"), headers=headers)


def facets(root: str, key: str, filter_: Filter | None, limit: int) -> Call[Facets]:
    """Count the values under a key."""
    body: dict[str, Any] = {"key": key, "limit": limit}
    if filter_ is not None:
        body["filter"] = filter_
    return Call("POST", f"{root}/facets", _facets, to_json(body))


def _item_path(root: str, item_id: str | int) -> str:
    return f"{root}/items/{segment(plain_id(item_id))}"


def plain_ids(ids: Ids) -> list[str]:
    """Ids as strings. InputError: it is no list, or one is no id."""
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__len__"):
        raise InputError(f"ids: expected a list of ids, got {ids!r}")
    found = []
    for place, item_id in enumerate(ids):
        try:
            text = plain_id(item_id)
            text.encode()
        except InputError as error:
            raise InputError(f"ids[{place}]: {error}") from None
        except UnicodeEncodeError:
            raise InputError(f"ids[{place}]: expected valid Unicode, got {item_id!r}") from None
        found.append(text)
    return found


def plain_id(item_id: Any) -> str:
    """An id as a string; an integer, NumPy's too, means its decimal one. InputError: it is neither."""
    if isinstance(item_id, str):
        return item_id
    if isinstance(item_id, bool) or not hasattr(item_id, "__index__"):
        raise InputError(f"expected an id, a string or an integer, got {item_id!r}")
    return str(item_id.__index__())


def _delete(root: str, body: Mapping[str, Any], key: str | None) -> Call[Deleted]:
    return Call("POST", f"{root}/items/delete", lambda data: make(Deleted, data), to_json(body), headers=once(key))


def _indexed(data: Any) -> int:
    return int(data["indexed"])


def _item(data: Any) -> Item:
    return make(Item, data, codes=_decoded(data.get("codes"), "u1"), features=_decoded(data.get("features"), "<f4"))


def _decoded(given: Mapping[str, str] | None, dtype: str) -> dict[str, NDArray[Any]] | None:
    return None if given is None else {name: decode(text, dtype) for name, text in given.items()}


def _total(data: Any) -> int:
    return int(data["total"])


def _item_page(data: Any) -> ItemPage:
    return make(ItemPage, data, items=tuple(_item(entry) for entry in data["items"]))


def _facets(data: Any) -> Facets:
    return make(Facets, data, values=tuple(make(Facet, entry) for entry in data["values"]))
