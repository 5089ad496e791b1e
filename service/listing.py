"""Items as they are stored, in order of insertion: page by page, and all of one moment."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccq_core.features import FeatureSet
from service.body import parse
from service.collection import Collection
from service.errors import Fault, InvalidRequestError, StorageError
from service.filters import Predicate, compile_filter
from service.items import reply_bytes
from service.places import shorten
from service.records import Codes
from service.responses import stored_payload
from service.schemas.items import ListRequest
from service.settings import Settings
from service.store.interface import ItemRow, Seqs, Snapshot
from service.tables import View

AT_ONCE = 10_000
_PER_CODE = 16  # characters of JSON beside the code itself
_PER_FEATURES = 16


@dataclass(frozen=True)
class Listed:
    """n items.

    Attributes
    ----------
    rows:
        Ids, versions and payloads.
    databases, codes:
        Names of the databases, and the items' code rows in them.
    features:
        Kept features, where they were asked for.
    """

    rows: Sequence[ItemRow]
    databases: tuple[str, ...]
    codes: Codes
    features: FeatureSet | None

    def described(self, *, codes: bool) -> list[dict[str, Any]]:
        """Each as a `ListedItem`; with its code rows if `codes`."""
        return [self._described(i, row, codes) for i, row in enumerate(self.rows)]

    def _described(self, i: int, row: ItemRow, codes: bool) -> dict[str, Any]:
        held = np.flatnonzero(self.codes.present[i]).tolist()
        item: dict[str, Any] = {
            "id": row.id,
            "version": row.version,
            "payload": stored_payload(row.id, row.payload),
            "databases": [self.databases[at] for at in held],
        }
        if codes:
            item["codes"] = {self.databases[at]: _base64(self.codes.rows[i, at].tobytes()) for at in held}
        if self.features is not None:
            item["features"] = {
                name: _base64(array[i].astype("<f4").tobytes())
                for name, array in self.features.arrays.items()
                if self.features.present[name][i]
            }
        return item


def list_items(
    collection: Collection, request: ListRequest, settings: Settings, matches: Predicate | None = None, at: str = "#/"
) -> dict[str, Any]:
    """An `ItemPage`: of `limit` items, or of fewer where these are long, but of one at least if there is one.

    Parameters
    ----------
    matches:
        The filter of the request.
    at:
        What stands before a parameter's name where it is told to be wrong.

    Raises
    ------
    InvalidRequestError
        The limit is too high, the cursor is not one that a page gave, or the collection keeps no features.
    StorageError
        A payload is damaged, or kept features are missing.
    """
    limit, codes, features = request.limit, request.with_codes, request.with_features
    if limit > settings.max_limit:
        raise _refused(at, "limit", f"expected at most {settings.max_limit}, got {limit}")
    after = 0 if request.cursor is None else _from_cursor(request.cursor, at)
    _check_kept(collection, features, at)
    rows: list[ItemRow] = []
    more = _more_bytes(collection, codes, features)
    size = 0
    next_cursor = None
    with collection.read() as (view, snapshot):
        seqs = None if matches is None else matches.seqs(snapshot)
        total = view.items if seqs is None else len(seqs)
        for row in _behind(snapshot, after, limit + 1, seqs) if limit else ():
            size += reply_bytes(row.id, row.payload) + more
            if rows and (len(rows) == limit or size > settings.max_reply_bytes):
                next_cursor = _to_cursor(rows[-1].seq)
                break
            rows.append(row)
        listed = _listed(collection, view, snapshot, rows, features)
    items, model = listed.described(codes=codes), view.coder.record.model
    return {"items": items, "next_cursor": next_cursor, "model": model, "total": total}


def find_items(collection: Collection, body: bytes, settings: Settings) -> dict[str, Any]:
    """Answer a `ListRequest`; raises what `list_items` raises, and any RequestError about bodies and filters."""
    request = parse(body, ListRequest)
    matches = None if request.filter is None else compile_filter(request.filter, body)
    return list_items(collection, request, settings, matches)


def _behind(snapshot: Snapshot, after: int, most: int, seqs: Seqs | None) -> Iterator[ItemRow]:
    """Up to so many items behind a sequence number; of `seqs`, if they are given."""
    if seqs is None:
        return snapshot.page(after, most)
    first = int(np.searchsorted(seqs, after, side="right"))
    return snapshot.rows(seqs[first : first + most].tolist())


def read_all(collection: Collection, *, features: bool) -> Iterator[Listed]:
    """All items as they are at one moment, whatever is written meanwhile; some thousands at a time.

    Parameters
    ----------
    features:
        Read kept features too.

    Raises
    ------
    InvalidRequestError
        The collection keeps no features.
    StorageError
        Kept features are missing.
    """
    _check_kept(collection, features, "")
    with collection.read() as (view, snapshot):
        after = 0
        while rows := list(snapshot.page(after, AT_ONCE)):
            yield _listed(collection, view, snapshot, rows, features)
            after = rows[-1].seq


def _listed(collection: Collection, view: View, snapshot: Snapshot, rows: Sequence[ItemRow], features: bool) -> Listed:
    seqs = np.array([row.seq for row in rows], dtype=np.int64)
    taken = [table.take(seqs) for table in view.tables.values()]
    codes = Codes(np.stack([has for has, _ in taken], axis=1), np.stack([row for _, row in taken], axis=1))
    kept = None
    if features and collection.kept is not None:
        records = dict(snapshot.kept(seqs.tolist()))
        if len(records) != len(rows):
            raise StorageError(f"collection {collection.record.name!r}: kept features are missing; index them again")
        kept = collection.kept.unpack([records[seq] for seq in seqs.tolist()])
    return Listed(rows, view.coder.layout.databases, codes, kept)


def _check_kept(collection: Collection, features: bool, at: str) -> None:
    if features and collection.kept is None:
        raise _refused(at, "with_features", f"collection {collection.record.name!r} keeps no features")


def _refused(at: str, key: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault(f"{at}{key}", f"{key}: {reason}")])


def _more_bytes(collection: Collection, codes: bool, features: bool) -> int:
    """About how many bytes of a reply the codes and features of an item take at most."""
    size = 0
    coder = collection.view.coder
    if codes:
        size += len(coder.layout.databases) * (_PER_CODE + coder.layout.width * 4 // 3)
    if features:
        size += sum(_PER_FEATURES + dim * 16 // 3 for dim in coder.model.dims.values())
    return size


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def _to_cursor(seq: int) -> str:
    return base64.urlsafe_b64encode(struct.pack(">q", seq)).decode().rstrip("=")


def _from_cursor(cursor: str, at: str) -> int:
    try:
        (seq,) = struct.unpack(">q", base64.b64decode(cursor + "=", altchars=b"-_", validate=True))
    except (binascii.Error, struct.error, ValueError):
        raise _refused(at, "cursor", f"expected the next_cursor of a page, got {shorten(cursor)}") from None
    return int(seq)
