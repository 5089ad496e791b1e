"""Searching a collection: what POST /search does, without HTTP."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from ccq_core.distances import DistanceTables
from ccq_core.features import Float32
from ccq_core.model import PAIR
from ccq_core.scan import Keys
from service import metrics
from service.body import parse
from service.collection import Collection, View
from service.errors import Fault, InvalidRequestError, ReplyTooLargeError, UnknownDatabaseError, UnknownItemError
from service.features import read_vectors
from service.filters import Predicate, compile_filter
from service.items import reply_bytes, took_ms
from service.places import Location, shorten
from service.responses import stored_payload
from service.schemas.search import SearchRequest
from service.settings import Settings
from service.store.interface import ItemRow, Seqs, Snapshot

Texts = dict[int, tuple[str, orjson.Fragment | None]]


@dataclass(frozen=True)
class Answer:
    """What a search found, as `SearchReply`, and how many results were asked for by how many queries."""

    reply: dict[str, Any]
    limit: int
    queries: int


def search_together(
    collection: Collection, bodies: Sequence[bytes], settings: Settings
) -> Iterator[tuple[int, Answer | Exception]]:
    """Answer some `SearchRequest`s of one collection, as of one moment; those that can share a pass over the codes.

    Yields
    ------
    Positions of bodies, each once, with the answer, or with what is wrong: any `RequestError` about bodies, features,
    databases, filters and ids. Nothing is kept of a reply, which may be long, when the next is made.

    Raises
    ------
    UnavailableError
        From the store.
    """
    start = time.perf_counter()
    wrong: dict[int, Exception] = {}
    searches: dict[int, _Search] = {}
    for i, body in enumerate(bodies):
        with _kept(wrong, i):
            searches[i] = _Search.read(body, collection, settings)
    if searches:
        with collection.read() as (view, snapshot):
            jobs: dict[int, Job] = {}
            for i, search in searches.items():
                with _kept(wrong, i):
                    jobs[i] = search.job(collection, snapshot)
            for i, rankings in zip(jobs, rank(view, list(jobs.values())), strict=True):
                with _kept(wrong, i):
                    yield (
                        i,
                        Answer(
                            {"results": searches[i].results(rankings, snapshot, settings), "took_ms": took_ms(start)},
                            searches[i].request.limit,
                            len(rankings),
                        ),
                    )
    yield from wrong.items()


@contextmanager
def _kept(wrong: dict[int, Exception], i: int) -> Iterator[None]:
    """What is wrong with one request is its answer, and no matter of the others."""
    try:
        yield
    except Exception as error:
        wrong[i] = error


@dataclass(frozen=True)
class _Search:
    """A request that was read and checked.

    Attributes
    ----------
    latents:
        (q, D) float32; None where a stored item is the query.
    """

    request: SearchRequest
    databases: tuple[str, ...]
    predicate: Predicate | None
    latents: Float32 | None

    @classmethod
    def read(cls, body: bytes, collection: Collection, settings: Settings) -> Self:
        request = parse(body, SearchRequest, queries=settings.max_batch_queries)
        _check_size(request, settings)
        databases = _databases(request, collection)
        predicate = None if request.filter is None else compile_filter(request.filter, body)
        latents = None if request.query_id is not None else _latents(request, collection)
        return cls(request, databases, predicate, latents)

    def job(self, collection: Collection, snapshot: Snapshot) -> Job:
        latents, exclude = self.latents, None
        if latents is None:
            item = _stored_item(self.request, collection, snapshot)
            latents, exclude = _latent_of(item, collection), item.seq
        tables = collection.model.distance_tables_latent(latents, metric=self.request.metric)
        allowed = None if self.predicate is None else np.array(self.predicate.seqs(snapshot), dtype=np.int64)
        return Job(tables, self.databases, self.request.limit, allowed, exclude)

    def results(self, rankings: Sequence[Ranking], snapshot: Snapshot, settings: Settings) -> list[Any]:
        with_payload = self.request.with_payload
        texts = _texts(snapshot, rankings, with_payload, settings.max_reply_bytes)
        found = [_hits(ranking, self.databases, texts, with_payload) for ranking in rankings]
        return found[0] if self.request.queries is None else found


@dataclass(frozen=True)
class Job:
    """What to search for.

    Attributes
    ----------
    tables:
        The look-up tables of q queries.
    databases:
        Names of one or several databases, searched as one.
    limit:
        How many rows; fewer come only where fewer qualify.
    allowed:
        Ascending sequence numbers of the items to look at; all by default.
    exclude:
        Sequence number of an item to leave out.
    """

    tables: DistanceTables
    databases: tuple[str, ...]
    limit: int
    allowed: Seqs | None = None
    exclude: int | None = None

    @property
    def wanted(self) -> int:
        """How many rows from each database, of which the one left out may be one."""
        return self.limit + (self.exclude is not None)


@dataclass(frozen=True)
class Ranking:
    """The best rows for one query, best first.

    Attributes
    ----------
    seqs:
        (k,) sequence numbers of the items.
    databases:
        (k,) position of each row's database in the request.
    distances, scores:
        (k,) float32.
    """

    seqs: Seqs
    databases: NDArray[np.intp]
    distances: Float32
    scores: Float32


def rank(view: View, jobs: Sequence[Job]) -> list[list[Ranking]]:
    """For each job one ranking per query: ties by order of insertion, then of databases."""
    rankings: list[list[Ranking]] = [[] for _ in jobs]
    for together in _groups(jobs):
        first = jobs[together[0]]
        tables = first.tables
        if len(together) > 1:
            tables = DistanceTables.joined([jobs[i].tables for i in together])
        metrics.scanned([view.tables[name] for name in first.databases], len(tables), first.allowed)
        found = [view.tables[name].search(tables, first.wanted, first.allowed) for name in first.databases]
        query = 0
        for i in together:
            for _ in range(len(jobs[i].tables)):
                rankings[i].append(_ranking([hits[query] for hits in found], tables, query, jobs[i]))
                query += 1
    return rankings


def _groups(jobs: Sequence[Job]) -> list[list[int]]:
    """Positions of jobs that one search of the tables can serve."""
    groups: dict[Hashable, list[int]] = {}
    for i, job in enumerate(jobs):
        key = (job.tables.metric, job.databases, job.wanted) if job.allowed is None else i
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _ranking(parts: Sequence[tuple[Seqs, Keys]], tables: DistanceTables, query: int, job: Job) -> Ranking:
    """One ranking of the rows found in each database."""
    seqs = np.concatenate([part[0] for part in parts])
    keys = np.concatenate([part[1] for part in parts])
    source = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    order = np.lexsort((source, seqs, keys))
    if job.exclude is not None:
        order = order[seqs[order] != job.exclude]
    order = order[: job.limit]
    (distances,) = tables[query : query + 1].distances(keys[None, order])
    scores = 1 - distances if tables.metric == "cosine" else 0 - distances
    return Ranking(seqs[order], source[order], distances, scores)


def _check_size(request: SearchRequest, settings: Settings) -> None:
    queries = 1 if request.queries is None else len(request.queries)
    faults = []
    if request.limit > settings.max_limit:
        faults.append(Fault.at(("limit",), f"expected at most {settings.max_limit}, got {request.limit}"))
    elif queries * request.limit > settings.max_results:
        reason = f"expected at most {settings.max_results} results, got {queries} queries with {request.limit} each"
        faults.append(Fault.at(("limit",), reason))
    if faults:
        raise InvalidRequestError.from_faults(faults)


def _databases(request: SearchRequest, collection: Collection) -> tuple[str, ...]:
    known = collection.layout.databases
    if request.database is None:
        return (PAIR,) if PAIR in known else known
    for i, name in enumerate(request.database):
        if name not in known:
            expected = ", ".join(known)
            reason = f"unknown database {shorten(name)}, expected {expected} (model {collection.record.model})"
            place: Location = ("database",) if len(request.database) == 1 else ("database", i)
            raise UnknownDatabaseError.from_faults([Fault.at(place, reason)])
    return tuple(request.database)


def _latents(request: SearchRequest, collection: Collection) -> Float32:
    """Latent vectors (q, D) of the queries that the request spells out."""
    queries = [request.query] if request.queries is None else request.queries
    objects = [query for query in queries if query is not None]
    single = request.queries is None
    vectors = read_vectors(
        objects,
        lambda i: ("query",) if single else ("queries", i),
        collection.model,
        collection.record.model,
    )
    rows = np.arange(len(objects))
    with vectors.faults_named(rows):
        return collection.model.project(vectors.marked(rows))


def _stored_item(request: SearchRequest, collection: Collection, snapshot: Snapshot) -> ItemRow:
    item_id = request.query_id or ""
    item = snapshot.item(item_id)
    if item is None:
        fault = Fault.at(("query_id",), f"no item {shorten(item_id)}")
        raise UnknownItemError(item_id, collection.record.name, [fault])
    return item


def _latent_of(item: ItemRow, collection: Collection) -> Float32:
    """Latent vector (1, D) of a stored item: of its `pair` codes, else of its only ones."""
    codes = collection.layout.unpack(item.record)
    last = np.flatnonzero(codes.present[0])[-1]  # `pair` is the last database, and an item without it is in one only
    return collection.model.decode(codes.rows[:, last])


def _texts(snapshot: Snapshot, rankings: Sequence[Ranking], with_payload: bool, max_bytes: int) -> Texts:
    """Ids and payloads of all results; ReplyTooLargeError as soon as they are too long for one reply."""
    times = Counter(seq for ranking in rankings for seq in ranking.seqs.tolist())
    texts: Texts = {}
    size = 0
    for seq, item_id, payload in snapshot.texts(times, with_payload):
        size += times[seq] * reply_bytes(item_id, payload)
        if size > max_bytes:
            advice = "ask for fewer" + (
                ', or for none of their payloads ("with_payload": false)' if with_payload else ""
            )
            reason = f"expected results of at most {max_bytes} bytes together, got more: {advice}"
            raise ReplyTooLargeError.from_faults([Fault.at(("limit",), reason)])
        texts[seq] = item_id, stored_payload(item_id, payload)
    return texts


def _hits(ranking: Ranking, databases: Sequence[str], texts: Texts, with_payload: bool) -> list[dict[str, Any]]:
    hits = []
    for seq, source, distance, score in zip(
        ranking.seqs.tolist(), ranking.databases.tolist(), ranking.distances, ranking.scores, strict=True
    ):
        item_id, payload = texts[seq]
        hit = {"id": item_id, "database": databases[source], "distance": distance, "score": score}
        if with_payload:
            hit["payload"] = payload
        hits.append(hit)
    return hits
