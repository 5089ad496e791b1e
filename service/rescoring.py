"""Results ranked anew by the features that their collection keeps: codes choose the candidates, floats order them.

Candidates come in blocks of one length, in the order of their codes, and each block is put in order by itself. So pages
with the same `limit` are parts of one order: none shows what another has shown, and a page far behind costs no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ccq_core.latents import Latents
from service.errors import Fault, InvalidRequestError, StorageError
from service.mirror import Mirror
from service.ranking import Job, Ranking
from service.schemas.search import SearchRequest
from service.store.interface import Seqs, Snapshot
from service.tables import View
from service.warming import Warming, latent_key


def check_rescoring(request: SearchRequest, collection: Mirror) -> None:
    """InvalidRequestError if a request wants results ranked anew where nothing is kept to do so."""
    if request.rescore and collection.kept is None:
        name = collection.record.name
        reason = f"collection {name!r} keeps no features to rank by; it would have to be made with `keep`"
        raise InvalidRequestError.from_faults([Fault.at(("rescore",), reason)])


def block_rows(request: SearchRequest, max_limit: int) -> int:
    """How many candidates are in a block: one result more than is asked for, times the oversampling."""
    return min(math.ceil((request.limit + 1) * request.oversampling), max_limit + 1)


def rows_to_rescore(request: SearchRequest, max_limit: int) -> int:
    """How many candidates there are to be: those of all blocks as far as the page goes."""
    rows = block_rows(request, max_limit)
    return min(rows * -(-(request.offset + request.limit) // rows), max_limit + 1)


def rescored(
    rankings: Sequence[Ranking],
    job: Job,
    page: slice,
    block: int,
    least_score: np.float32 | None,
    collection: Mirror,
    view: View,
    snapshot: Snapshot,
    warming: Warming,
) -> list[Ranking]:
    """The rows of the ranking of each query, each block in the order of their exact distances in the latent space.

    Parameters
    ----------
    page, block:
        Which of them are wanted, and have a score of `least_score` at least; and how many are a block.

    Raises
    ------
    StorageError
        Kept features are missing or damaged.
    """
    metric = job.metric
    start = page.start // block * block
    page = slice(page.start - start, page.stop - start)
    found = []
    for whole, point in zip(rankings, job.points.astype(np.float64), strict=True):
        ranking = whole.take(slice(start, None)) if start else whole
        keys = np.empty(len(ranking))
        for source, database in enumerate(job.databases):
            here = slice(None) if len(job.databases) == 1 else ranking.databases == source
            keys[here] = warming.cache.keys(
                latent_key(view.coder, database),
                view.tables[database].rows,
                ranking.seqs[here],
                point,
                metric,
                partial(_read, database=database, collection=collection, view=view, snapshot=snapshot, warming=warming),
            )
        order = np.argsort(keys)
        in_order = keys[order]
        # Both are rare, and three times the work.
        if len(keys) > block or (in_order[1:] == in_order[:-1]).any():
            order = np.lexsort((ranking.databases, ranking.seqs, keys, np.arange(len(keys)) // block))
        order = order[page]
        keys = keys[order]
        distances = (np.clip(1 + keys, 0, 2) if metric == "cosine" else keys).astype(np.float32)
        scores = 1 - distances if metric == "cosine" else 0 - distances
        anew = Ranking(ranking.seqs[order], ranking.databases[order], keys, distances, scores, ranking.complete)
        found.append(anew if least_score is None else anew.take(np.flatnonzero(scores >= least_score)))
    return found


def _read(
    seqs: Seqs, *, database: str, collection: Mirror, view: View, snapshot: Snapshot, warming: Warming
) -> Latents:
    """Latent vectors of items, from the features that are kept of them."""
    layout, coder = collection.kept, view.coder
    if layout is None:  # `check_rescoring` has seen to it
        raise RuntimeError("nothing is kept")
    warming.begin(latent_key(coder, database), collection, coder, int(seqs.max()))
    records = dict(snapshot.kept(seqs.tolist()))
    if len(records) == len(seqs):
        has, latents = layout.latents([records[seq] for seq in seqs.tolist()], database, coder.model)
        if has.all():
            return latents
    raise StorageError(f"collection {collection.record.name!r}: kept features are missing; index the items again")
