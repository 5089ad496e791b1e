"""The verbs that search one collection."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Unpack

from ccq_client import hints
from ccq_client._async.connection import AsyncConnection
from ccq_client.calls import items as item_calls
from ccq_client.calls import search as search_calls
from ccq_client.calls.call import Call
from ccq_client.calls.search import Query, Vectors
from ccq_client.errors import CCQError, EmptyDatabaseWarning, UnknownKeyWarning
from ccq_client.options import RankingOptions, SearchOptions, check_options
from ccq_client.results import Groups, Hit, Hits

T = TypeVar("T")
_QUERY = ("features", "by_id", "like", "unlike")


class AsyncSearches:
    """Searches of one collection; `AsyncItems` adds the other verbs."""

    def __init__(self, connection: AsyncConnection, collection: str) -> None:
        self._connection = connection
        self._collection = collection
        self._root = item_calls.root(collection)

    async def search(
        self,
        features: Vectors | None = None,
        *,
        by_id: str | int | None = None,
        like: Sequence[str | int | Vectors] | None = None,
        unlike: Sequence[str | int | Vectors] | None = None,
        limit: int = 10,
        offset: int = 0,
        cursor: str | None = None,
        **options: Unpack[SearchOptions],
    ) -> Hits:
        """Search by features, by a stored item, or by examples: exactly one of `features`, `by_id` and `like`.

        Parameters
        ----------
        features:
            One vector of one or several modalities, as in ``{"text": vector}``; or a text, or the bytes of an image
            file, where the collection has an encoder.
        by_id:
            Id of a stored item, which is left out of the results.
        like, unlike:
            Examples, each an id or features: results are like the ones and not like the others.
        limit, offset:
            How many results, and how many to pass over.
        cursor:
            `next_cursor` of the page before; see `search_iter`.
        options:
            `SearchOptions`: database, filter, score_threshold, with_payload, metric, rescore, oversampling.
        """
        query = Query(features, by_id, like, unlike)
        checked = check_options(options, SearchOptions, (*_QUERY, "limit", "offset", "cursor"))
        hits = await self._connection.send(search_calls.search(self._root, query, limit, offset, cursor, checked))
        if not hits and not offset and cursor is None:
            await self._explain(checked)
        return hits

    async def search_batch(
        self, queries: Vectors | Sequence[Vectors], *, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> list[Hits]:
        """Search for several queries; the results of each, in their order.

        Parameters
        ----------
        queries:
            (q, P) arrays by modality, where a row of NaN is an absent modality; or a list of single queries. As many
            as one likes.
        limit:
            How many results of each.
        options:
            As of `search`.
        """
        checked = check_options(options, SearchOptions, ("queries", "limit"))
        given = search_calls.queries(queries)
        limits = await self._connection.limits()
        found: list[Hits] = []
        for call in search_calls.batches(self._root, given, limit, limits, checked):
            part = await self._connection.send(call)
            found += part
        if found and not any(found):
            await self._explain(checked)
        return found

    async def search_groups(
        self,
        features: Vectors | None = None,
        *,
        group_by: str,
        group_size: int = 1,
        by_id: str | int | None = None,
        like: Sequence[str | int | Vectors] | None = None,
        unlike: Sequence[str | int | Vectors] | None = None,
        limit: int = 10,
        offset: int = 0,
        **options: Unpack[RankingOptions],
    ) -> Groups:
        """The best groups of results with the same value under the key `group_by` of their payloads.

        Parameters
        ----------
        group_by, group_size:
            The key, and how many results a group has.
        limit, offset:
            How many groups, and how many to pass over.
        features, by_id, like, unlike, options:
            As of `search`, without rescore.
        """
        query = Query(features, by_id, like, unlike)
        checked = check_options(options, RankingOptions, ("group_by", "group_size", *_QUERY, "limit", "offset"))
        call = search_calls.groups(self._root, query, group_by, group_size, limit, offset, checked)
        groups = await self._connection.send(call)
        if not groups and not offset:
            await self._explain(checked, group_by)
        return groups

    async def search_iter(
        self,
        features: Vectors | None = None,
        *,
        by_id: str | int | None = None,
        like: Sequence[str | int | Vectors] | None = None,
        unlike: Sequence[str | int | Vectors] | None = None,
        page: int = 100,
        **options: Unpack[RankingOptions],
    ) -> AsyncIterator[Hit]:
        """All results, best first, asked for page by page as they are needed.

        No page goes deeper than the service's ``max_limit`` results: behind those `RequestError` is raised.

        Parameters
        ----------
        page:
            How many results to ask for at a time.
        features, by_id, like, unlike, options:
            As of `search`, without rescore.
        """
        query = Query(features, by_id, like, unlike)
        checked = check_options(options, RankingOptions, (*_QUERY, "page"))
        cursor: str | None = None
        while True:
            call = search_calls.search(self._root, query, page, 0, cursor, checked)
            hits = await self._connection.send(call)
            if not hits and cursor is None:
                await self._explain(checked)
            for hit in hits:
                yield hit
            cursor = hits.next_cursor
            if cursor is None:
                return

    async def _explain(self, options: Mapping[str, Any], *keys: str) -> None:
        """Warn, once each, of what may be why a search found nothing: empty databases, and keys that no item has."""
        given = options.get("database")
        asked = None if given is None else (given,) if isinstance(given, str) else tuple(given)
        if self._connection.first_time((self._collection, asked)):
            databases = await self._hint(item_calls.databases(self._root))
            message = "" if databases is None else hints.empty_databases(self._collection, asked, databases)
            if message:
                warnings.warn(message, EmptyDatabaseWarning, stacklevel=3)
                return
        await self._explain_keys("no results", {*keys, *hints.keys_of_filter(options.get("filter"))}, 4)

    async def _explain_keys(self, what: str, keys: Iterable[str], stacklevel: int) -> None:
        """Warn, once each, of keys that the items do not have, where they have one like it."""
        new = [key for key in keys if self._connection.first_time((self._collection, "key", key))]
        if not new:
            return
        items = await self._hint(item_calls.page(self._root, None, hints.SAMPLE, None, False, False))
        for key, near in hints.misspelled(new, [item.payload for item in items or ()]):
            message = f"{what}: of the first items of collection {self._collection!r} none has {key!r} in its payload"
            warnings.warn(f"{message}; did you mean {near!r}?", UnknownKeyWarning, stacklevel=stacklevel)

    async def _hint(self, call: Call[T]) -> T | None:
        """The result of a request that is for a hint, sent once; None if it fails: what was asked for was answered."""
        try:
            return await self._connection.send(call, replace(self._connection.retries, times=0))
        except CCQError:
            return None
