"""Searching a collection: what POST /search does, without HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from ccq_core.features import Float32
from ccq_core.model import PAIR
from service.body import parse
from service.errors import (
    CoreInputError,
    Fault,
    InvalidRequestError,
    UnknownDatabaseError,
    WouldTakeLongError,
)
from service.filter_cache import FilterCache
from service.filters import Predicate, compile_filter
from service.grouping import form_groups, rows_to_group
from service.hits import read_hits
from service.items import took_ms
from service.latents import LatentCache
from service.mirror import Mirror
from service.paging import Cursor, cut_page, rows_to_search, search_digest
from service.places import Location, shorten
from service.query import Query, spell
from service.ranking import Job, Ranking, deepen, least_float32, rank
from service.rescoring import block_rows, check_rescoring, rescored, rows_to_rescore
from service.schemas.search import SearchRequest
from service.settings import Settings
from service.store.interface import Seqs, Snapshot
from service.tables import View
from service.warming import Warming

_QUICK_ROWS = 200
_QUICK_EXAMPLES = 16

Reply = dict[str, Any]


class Answer(NamedTuple):
    """What a search found, as `SearchReply`, and how many results were asked for by how many queries."""

    reply: Reply
    limit: int
    queries: int


@dataclass(frozen=True)
class Caches:
    """What searches keep for those that come later.

    Attributes
    ----------
    filters:
        What filters matched.
    warming:
        What results are ranked anew by, and what reads it ahead.
    """

    filters: FilterCache
    warming: Warming

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Empty, of the sizes that are set."""
        return cls(FilterCache(settings.filter_cache_bytes), Warming(LatentCache(settings.rescore_cache_bytes)))


def search_together(
    collection: Mirror,
    bodies: Sequence[bytes],
    settings: Settings,
    caches: Caches,
    *,
    quick: bool = False,
) -> Iterator[tuple[int, Answer | Exception]]:
    """Answer some `SearchRequest`s of one collection, as of one moment; those that can share a pass over the codes.

    Parameters
    ----------
    caches:
        What was found before.
    quick:
        Neither wait for a writer, nor read all payloads, nor use an encoder: raise WouldTakeLongError, or yield it for
        a request, instead.

    Yields
    ------
    Positions of bodies, each once, with the answer, or with what is wrong: any `RequestError` about bodies, features,
    databases, filters and ids, or EncoderFailedError. Nothing is kept of a reply, which may be long, when the next is
    made.

    Raises
    ------
    UnavailableError
        From the store.
    """
    start = time.perf_counter()
    wrong: dict[int, Exception] = {}
    searches: dict[int, _Search] = {}
    for i, body in enumerate(bodies):
        with _Kept(wrong, i):
            search = _Search.read(body, collection, settings)
            if quick and not search.is_quick:
                raise WouldTakeLongError
            searches[i] = search if quick else search.encoded()  # a quick one has nothing to encode
    if searches:
        coder = collection.view.coder
        queries = [search.query for search in searches.values()]
        spelled = spell(queries, coder)
        with collection.read(quick=quick) as (view, snapshot):
            if view.coder is not coder:  # the collection got another model in this very moment
                spelled = spell(queries, view.coder)
            jobs: dict[int, Job] = {}
            for (i, search), points in zip(searches.items(), spelled, strict=True):
                with _Kept(wrong, i):
                    jobs[i] = search.job(points, view, snapshot, caches)
            for i, rankings in zip(jobs, rank(view, list(jobs.values())), strict=True):
                with _Kept(wrong, i):
                    yield i, searches[i].answer(jobs[i], rankings, view, snapshot, caches, start)
    yield from wrong.items()


class _Kept:
    """What is wrong with one request is its answer, and no matter of the others."""

    __slots__ = ("_i", "_wrong")

    def __init__(self, wrong: dict[int, Exception], i: int) -> None:
        self._wrong = wrong
        self._i = i

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception):
            self._wrong[self._i] = error
            return True
        return False


class _Search(NamedTuple):
    """A request that was read and checked."""

    collection: Mirror
    settings: Settings
    request: SearchRequest
    databases: tuple[str, ...]
    predicate: Predicate | None
    query: Query
    cursor: Cursor | None

    @classmethod
    def read(cls, body: bytes, collection: Mirror, settings: Settings) -> Self:
        request = parse(body, SearchRequest, queries=settings.max_batch_queries)
        _check_size(request, settings)
        cursor = None if request.cursor is None else Cursor.read(request.cursor)
        databases = _databases(request, collection)
        check_rescoring(request, collection)
        predicate = None if request.filter is None else compile_filter(request.filter, body)
        return cls(collection, settings, request, databases, predicate, Query.read(request), cursor)

    @property
    def is_quick(self) -> bool:
        """Whether it can be expected to take no longer than most."""
        request = self.request
        several = request.queries is not None or request.group_by is not None or request.cursor is not None
        few = request.offset + request.limit <= _QUICK_ROWS and len(self.query.places) <= _QUICK_EXAMPLES
        return few and not several and not self.query.has_raw(self.collection.encoders)

    def encoded(self) -> Self:
        """The same with features in the place of texts and images.

        Each request by itself: encoders round differently for different numbers of values, and a cursor must find its
        query again.
        """
        encoders = self.collection.encoders
        return self._replace(query=self.query.encoded(encoders)) if encoders else self

    def job(self, spelled: Float32 | CoreInputError, view: View, snapshot: Snapshot, caches: Caches) -> Job:
        if isinstance(spelled, CoreInputError):
            raise spelled
        request = self.request
        latents, stored = self.query.resolve(spelled, self.collection, view, snapshot)
        if self.cursor is not None:
            self.cursor.check(self._digest(latents, stored, view))
        limit = request.limit
        if request.rescore:
            limit = rows_to_rescore(request, self.settings.max_limit)
        elif request.group_by is not None:
            limit = rows_to_group(request)
        elif request.queries is None:
            limit = rows_to_search(request, self.cursor, self.settings.max_limit)
        return Job(
            view.coder.model.ranking_metric(request.metric),
            latents,
            self.databases,
            limit,
            None if self.predicate is None else self._matching(self.predicate, snapshot, caches),
            stored,
            None if request.rescore else self._least_score,
        )

    def _matching(self, predicate: Predicate, snapshot: Snapshot, caches: Caches) -> Seqs:
        key = self.collection.record.number, snapshot.version, predicate.text
        return caches.filters.find(key, lambda: predicate.seqs(snapshot))

    @property
    def _least_score(self) -> np.float32 | None:
        threshold = self.request.score_threshold
        return None if threshold is None else least_float32(threshold)

    def answer(
        self,
        job: Job,
        rankings: Sequence[Ranking],
        view: View,
        snapshot: Snapshot,
        caches: Caches,
        start: float,
    ) -> Answer:
        reply = {**self._reply(job, rankings, view, snapshot, caches), "took_ms": took_ms(start)}
        return Answer(reply, self.request.limit, len(rankings))

    def _reply(self, job: Job, rankings: Sequence[Ranking], view: View, snapshot: Snapshot, caches: Caches) -> Reply:
        if self.request.rescore:
            wanted = slice(self.request.offset, self.request.offset + self.request.limit)
            block, least = block_rows(self.request, self.settings.max_limit), self._least_score
            rankings = rescored(rankings, job, wanted, block, least, self.collection, view, snapshot, caches.warming)
        if self.request.queries is not None:
            return {"results": self._hits(rankings, snapshot)}
        (ranking,) = rankings
        if self.request.rescore:
            (hits,) = self._hits([ranking], snapshot)
            return {"results": hits, "next_cursor": None}
        if self.request.group_by is not None:
            return {"results": self._groups(deepen(view, job, ranking), snapshot)}
        most = self.settings.max_limit
        page = cut_page(deepen(view, job, ranking, most + 1), self.request, self.cursor, most)
        (hits,) = self._hits([page.rows], snapshot)
        behind = Cursor.behind(page, self._digest(job.points, job.exclude, view)).write() if page.more else None
        return {"results": hits, "next_cursor": behind}

    def _groups(self, rankings: Iterator[Ranking], snapshot: Snapshot) -> list[Any]:
        ranking, groups = form_groups(rankings, self.request, snapshot, self.settings.max_reply_bytes)
        parts = [ranking.take(np.array(group.rows)) for group in groups]
        found = zip(groups, self._hits(parts, snapshot), strict=True)
        return [{"key": group.value, "hits": hits} for group, hits in found]

    def _hits(self, rankings: Sequence[Ranking], snapshot: Snapshot) -> list[Any]:
        return read_hits(rankings, self.databases, self.request, snapshot, self.settings.max_reply_bytes)

    def _digest(self, points: Float32, stored: tuple[int, ...], view: View) -> bytes:
        return search_digest(self.request, view.coder.record, points, stored)


def _check_size(request: SearchRequest, settings: Settings) -> None:
    most = settings.max_limit
    if request.limit > most:
        raise _refused("limit", f"expected at most {most}, got {request.limit}")
    if request.offset + request.limit > most:
        reason = f"expected at most {most} together with limit, got {request.offset} and {request.limit}"
        raise _refused("offset", reason)
    queries = 1 if request.queries is None else len(request.queries)
    if queries * request.limit > settings.max_results:
        reason = f"expected at most {settings.max_results} results, got {queries} queries with {request.limit} each"
        raise _refused("limit", reason)
    if request.limit * request.group_size > settings.max_results:
        reason = f"expected at most {settings.max_results} results, got {request.limit} groups of {request.group_size}"
        raise _refused("group_size", reason)
    candidates = queries * rows_to_rescore(request, most) if request.rescore else 0
    if candidates > settings.max_results + queries:
        reason = (
            f"expected at most {settings.max_results} results to rank anew (CCQ_MAX_RESULTS), got {candidates}: "
            "oversample less, or send fewer queries at a time"
        )
        raise _refused("oversampling", reason)
    if request.query_by is not None:
        examples = len(request.query_by.positive) + len(request.query_by.negative)
        if examples > settings.max_batch_queries:
            raise _refused("query_by", f"expected at most {settings.max_batch_queries} examples, got {examples}")


def _refused(key: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault.at((key,), reason)])


def _databases(request: SearchRequest, collection: Mirror) -> tuple[str, ...]:
    coder = collection.view.coder
    known = coder.layout.databases
    if request.database is None:
        return (PAIR,) if PAIR in known else known
    for i, name in enumerate(request.database):
        if name not in known:
            expected = ", ".join(known)
            reason = f"unknown database {shorten(name)}, expected {expected} (model {coder.record.model})"
            place: Location = ("database",) if len(request.database) == 1 else ("database", i)
            raise UnknownDatabaseError.from_faults([Fault.at(place, reason)])
    return tuple(request.database)
