"""The verbs that search one collection."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Unpack

from ccq_client._async.connection import AsyncConnection
from ccq_client.calls import items as item_calls
from ccq_client.calls import search as search_calls
from ccq_client.calls.search import Query, Vectors
from ccq_client.errors import CCQError, EmptyDatabaseWarning
from ccq_client.options import RankingOptions, SearchOptions, check_options
from ccq_client.results import Groups, Hit, Hits

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
            await self._explain(checked)
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

    async def _explain(self, options: Mapping[str, Any]) -> None:
        """Warn, once, if a search found nothing as all items are in other databases than the ones that it was of."""
        given = options.get("database")
        asked = None if given is None else (given,) if isinstance(given, str) else tuple(given)
        if not self._connection.first_time((self._collection, asked)):
            return
        try:
            databases = await self._connection.send(item_calls.databases(self._root))
        except CCQError:  # it is no more than a hint
            return
        message = search_calls.why_nothing(self._collection, asked, databases)
        if message:
            warnings.warn(message, EmptyDatabaseWarning, stacklevel=3)
