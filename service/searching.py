"""Searching a collection: what POST /search does, without HTTP."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ccq_core.distances import DistanceTables
from ccq_core.features import Float32
from ccq_core.model import PAIR
from service.body import parse
from service.collection import Collection, View
from service.errors import Fault, InvalidRequestError, ReplyTooLargeError, UnknownDatabaseError, UnknownItemError
from service.features import read_vectors
from service.filters import compile_filter
from service.items import reply_bytes, took_ms
from service.places import Location, shorten
from service.responses import stored_payload
from service.schemas.search import SearchRequest
from service.settings import Settings
from service.store.interface import ItemRow, Seqs, Snapshot

Texts = dict[int, tuple[str, orjson.Fragment | None]]


def search_items(collection: Collection, body: bytes, settings: Settings) -> dict[str, Any]:
    """Answer a `SearchRequest`.

    Raises
    ------
    RequestError
        Any of those about bodies, features, databases, filters and ids.
    UnavailableError
        From the store.
    """
    start = time.perf_counter()
    request = parse(body, SearchRequest, queries=settings.max_batch_queries)
    _check_size(request, settings)
    databases = _databases(request, collection)
    predicate = None if request.filter is None else compile_filter(request.filter, body)
    latents = None if request.query_id is not None else _latents(request, collection)
    with collection.read() as (view, snapshot):
        exclude = None
        if latents is None:
            item = _stored_item(request, collection, snapshot)
            latents, exclude = _latent_of(item, collection), item.seq
        tables = collection.model.distance_tables_latent(latents, metric=request.metric)
        allowed = None if predicate is None else np.array(predicate.seqs(snapshot), dtype=np.int64)
        rankings = rank(view, tables, databases, request.limit, allowed=allowed, exclude=exclude)
        texts = _texts(snapshot, rankings, request.with_payload, settings.max_reply_bytes)
    results = [_hits(ranking, databases, texts, tables.metric, request.with_payload) for ranking in rankings]
    return {"results": results[0] if request.queries is None else results, "took_ms": took_ms(start)}


@dataclass(frozen=True)
class Ranking:
    """The best rows for one query, best first.

    Attributes
    ----------
    seqs:
        (k,) sequence numbers of the items.
    databases:
        (k,) position of each row's database in the request.
    distances:
        (k,) float32.
    """

    seqs: Seqs
    databases: NDArray[np.intp]
    distances: Float32


def rank(
    view: View,
    tables: DistanceTables,
    databases: Sequence[str],
    limit: int,
    *,
    allowed: Seqs | None = None,
    exclude: int | None = None,
) -> list[Ranking]:
    """The best rows of some databases for each query, in one ranking: ties by order of insertion, then of databases.

    Parameters
    ----------
    view, tables:
        What to search, and the queries' look-up tables.
    databases:
        Names of one or several databases.
    limit:
        How many; fewer come only where fewer qualify.
    allowed:
        Ascending sequence numbers of the items to look at; all by default.
    exclude:
        Sequence number of an item to leave out.
    """
    wanted = limit if exclude is None else limit + 1  # from each database, of which the one left out may be one
    found = [view.tables[database].search(tables, wanted, allowed) for database in databases]
    seqs, sources, keys = [], [], []
    for query in range(len(tables)):
        parts = [hits[query] for hits in found]
        labels = np.concatenate([part[0] for part in parts])
        values = np.concatenate([part[1] for part in parts])
        source = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        order = np.lexsort((source, labels, values))
        if exclude is not None:
            order = order[labels[order] != exclude]
        order = order[:limit]
        seqs.append(labels[order])
        sources.append(source[order])
        keys.append(values[order])
    padded = np.zeros((len(tables), max(map(len, keys), default=0)))
    for query, values in enumerate(keys):
        padded[query, : len(values)] = values
    distances = tables.distances(padded)
    return [Ranking(seqs[query], sources[query], distances[query, : len(keys[query])]) for query in range(len(tables))]


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


def _hits(
    ranking: Ranking,
    databases: Sequence[str],
    texts: Texts,
    metric: str,
    with_payload: bool,
) -> list[dict[str, Any]]:
    scores = 1 - ranking.distances if metric == "cosine" else 0 - ranking.distances
    hits = []
    for seq, source, distance, score in zip(
        ranking.seqs.tolist(), ranking.databases.tolist(), ranking.distances, scores, strict=True
    ):
        item_id, payload = texts[seq]
        hit = {"id": item_id, "database": databases[source], "distance": distance, "score": score}
        if with_payload:
            hit["payload"] = payload
        hits.append(hit)
    return hits
