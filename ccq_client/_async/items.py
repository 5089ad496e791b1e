"""The verbs on the items of one collection, beside those that search it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from ccq_client import hints
from ccq_client._async.search import AsyncSearches
from ccq_client.arrays import Columns
from ccq_client.bulk import Batch, Bulk, Rows
from ccq_client.calls import items as item_calls
from ccq_client.calls.items import Ids, part_key
from ccq_client.codes import CodeRows
from ccq_client.errors import CCQError, InputError
from ccq_client.options import Filter
from ccq_client.pool import each_async
from ccq_client.progress import Progress, reporter
from ccq_client.results import (
    Deleted,
    Facets,
    Indexed,
    Item,
    ItemPage,
    Payload,
    PayloadSet,
)


class AsyncItems(AsyncSearches):
    """The items of one collection. Made by `AsyncClient`, which is one itself, and by its `collection`."""

    async def index(
        self,
        ids: Ids,
        features: Columns,
        payloads: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        if_versions: Sequence[int | None] | None = None,
        batch_items: int = 1000,
        batch_bytes: int = 8 << 20,
        concurrency: int = 1,
        progress: bool | Callable[[Progress], None] = False,
        idempotency_key: str | None = None,
    ) -> Indexed:
        """Index n items, in as many requests as they need. An item whose id is known is replaced.

        Each request is stored whole or not at all, is sent again where that helps, and is done once all the same.

        Parameters
        ----------
        ids:
            n ids, each once; an integer means its decimal string.
        features:
            (n, P) arrays of any float or integer type by modality; row i of each is the same object. A row of NaN: the
            object lacks the modality. Rows that lack all are left out. Where the collection has an encoder: n texts, or
            the bytes of n image files, with None for absent ones.
            Or n mappings of one row by modality.
        payloads:
            n JSON objects or None.
        if_versions:
            The version that each stored item must have, 0 for none to be there, None for any: if one of a request has
            another, nothing of the request is stored (`VersionMismatchError`).
        batch_items, batch_bytes:
            Most items and bytes of a request, if the service allows as much.
        concurrency:
            Requests at one time. With more than 1 the order of insertion, which decides among equal distances, is not
            quite that of the rows.
        progress:
            A function that is called after each request, or True for a bar on standard error.
        idempotency_key:
            A string that no other write has: the same call later, with batches of the same size, does nothing but say
            what it did. The requests behind the first have the key with the number of their first row behind it.

        Raises
        ------
        InputError
            An array cannot be sent; nothing was.
        IndexingError
            Some rows were stored before a request failed.
        ApiError, TransportError
            The first request failed, and nothing was stored.
        """
        rows = Rows(ids, features, payloads, if_versions)
        return await self._store(rows, batch_items, batch_bytes, concurrency, progress, idempotency_key)

    async def index_codes(
        self,
        ids: Ids,
        codes: Columns,
        payloads: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        model_checksum: str,
        features: Columns | None = None,
        if_versions: Sequence[int | None] | None = None,
        batch_items: int = 1000,
        batch_bytes: int = 8 << 20,
        concurrency: int = 1,
        progress: bool | Callable[[Progress], None] = False,
        idempotency_key: str | None = None,
    ) -> Indexed:
        """Index n items by their codes, as a collection of the same model has them: nothing is encoded.

        Parameters
        ----------
        codes:
            (n, M + 1) uint8 by database, as from ``CCQ.encode``; or n mappings of (M + 1,) by database, as `items` with
            codes gives them. An item of several modalities has to have that of ``pair`` too.
        model_checksum:
            ``checksum`` of the model that made them, which has to be the collection's.
        features:
            If the collection keeps features: (n, P) arrays, or n mappings, by modality.
        ids, payloads, if_versions, batch_items, batch_bytes, concurrency, progress, idempotency_key:
            As of `index`, as are the errors.
        """
        rows = Rows(ids, features, payloads, if_versions, CodeRows(codes, model_checksum))
        return await self._store(rows, batch_items, batch_bytes, concurrency, progress, idempotency_key)

    async def _store(
        self,
        rows: Rows,
        batch_items: int,
        batch_bytes: int,
        concurrency: int,
        progress: bool | Callable[[Progress], None],
        key: str | None,
    ) -> Indexed:
        if concurrency < 1:
            raise InputError(f"concurrency: expected 1 or more, got {concurrency}")
        await self._check_dimensions(rows)
        limits = await self._connection.limits()
        bulk = Bulk(rows, limits, batch_items, batch_bytes, reporter(progress))

        async def store(batch: Batch) -> None:
            with bulk.sending(batch):
                await self._connection.send(item_calls.index(self._root, batch.body, part_key(key, batch.rows[0])))

        try:
            await each_async(store, bulk.batches(), concurrency)
        except CCQError as error:
            bulk.explain(error)
            raise
        except BaseException as error:  # interrupted, cancelled, or the user's own function failed
            error.add_note(bulk.state())
            raise
        return bulk.summary()

    async def facets(self, key: str, *, filter: Filter | None = None, limit: int = 10) -> Facets:  # noqa: A002
        """Count the most frequent values under a key of payloads, of all items or of those that match a filter."""
        return await self._connection.send(item_calls.facets(self._root, key, filter, limit))

    async def get(self, item_id: str | int) -> Item:
        """One item; `ItemNotFoundError` if there is none."""
        return await self._connection.send(item_calls.get(self._root, item_id))

    async def count(self, filter: Filter | None = None) -> int:  # noqa: A002
        """How many items there are, or match a filter."""
        found = await self._connection.send(item_calls.count(self._root, filter))
        if not found:
            await self._explain_keys("no items", hints.keys_of_filter(filter), 3)
        return found

    async def item_page(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int = 1000,
        cursor: str | None = None,
        with_codes: bool = False,
        with_features: bool = False,
    ) -> ItemPage:
        """Some items in order of insertion: the first, or those behind `next_cursor` of the page before.

        All, or those that match a filter, such as ``{"must": [{"ids": ["a", "b"]}]}``. With their codes and kept
        features, if those are asked for; `RequestError` where the collection keeps none.
        """
        call = item_calls.page(self._root, filter, limit, cursor, with_codes, with_features)
        found = await self._connection.send(call)
        if not found.total:
            await self._explain_keys("no items", hints.keys_of_filter(filter), 3)
        return found

    async def items(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002
        page: int = 1000,
        with_codes: bool = False,
        with_features: bool = False,
    ) -> AsyncIterator[Item]:
        """All items in order of insertion, asked for page by page as they are needed; options as of `item_page`."""
        cursor: str | None = None
        while True:
            found = await self.item_page(
                filter=filter, limit=page, cursor=cursor, with_codes=with_codes, with_features=with_features
            )
            for item in found:
                yield item
            cursor = found.next_cursor
            if cursor is None:
                return

    async def delete(
        self,
        ids: Ids | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> Deleted:
        """Delete items by ids, where those that are not there are passed over, or all that match a filter.

        So many ids that the service takes them in several requests alone are deleted request by request. With
        `idempotency_key`, a string that no other write has, the same call later does nothing but say what it did.

        With `if_match` one item alone, and only if it has this version, else `VersionMismatchError`, or
        `ItemNotFoundError` if it is gone. Such a call takes no key: its version says what was done.
        """
        if (ids is None) == (filter is None):
            raise InputError("expected exactly one of ids and filter")
        if if_match is not None:
            if ids is None or len(ids) != 1 or idempotency_key is not None:
                raise InputError("if_match: expected a list of one id, no filter and no idempotency_key beside it")
            await self._connection.send(item_calls.delete_one(self._root, item_calls.plain_ids(ids)[0], if_match))
            return Deleted(1, 0.0)
        if ids is None:
            found = await self._connection.send(item_calls.delete_matching(self._root, filter, idempotency_key))
            if not found.deleted:
                await self._explain_keys("nothing deleted", hints.keys_of_filter(filter), 3)
            return found
        given = item_calls.plain_ids(ids)
        limits = await self._connection.limits() if len(given) > 1 else None
        deleted, took_ms = 0, 0.0
        for call in item_calls.deletes(self._root, given, limits, idempotency_key):
            done = await self._connection.send(call)
            deleted += done.deleted
            took_ms += done.took_ms
        return Deleted(deleted, took_ms)

    async def set_payload(
        self, item_id: str | int, payload: Payload, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> PayloadSet:
        """Replace the payload of an item, and nothing else.

        With `if_match` only if the item has this version, else `VersionMismatchError`; `idempotency_key` as of
        `delete`.
        """
        call = item_calls.set_payload(self._root, item_id, payload, if_match, idempotency_key)
        return await self._connection.send(call)

    async def _check_dimensions(self, rows: Rows) -> None:
        """InputError if the vectors do not fit the model; what was known may be of a collection that is gone."""
        known = (await self._connection.limits()).dimensions.get(self._collection)
        if known is None:
            return
        try:
            rows.check_dimensions(known, self._collection)
        except InputError:
            known = (await self._connection.limits(fresh=True)).dimensions.get(self._collection)
            if known is not None:
                rows.check_dimensions(known, self._collection)
