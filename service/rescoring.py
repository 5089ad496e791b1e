"""Results ranked anew by the features that their collection keeps: codes choose the candidates, floats order them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ccq_core.model import PAIR
from service.collection import Collection
from service.errors import Fault, InvalidRequestError, StorageError
from service.latents import LatentCache, Latents
from service.ranking import Job, Ranking
from service.schemas.search import SearchRequest
from service.store.interface import Seqs, Snapshot
from service.tables import View

# A matrix library may sum otherwise for another number of rows. For whole blocks of these it does not: then an item's
# latent vector is the same whatever others are looked at.
_BLOCK = 64


def check_rescoring(request: SearchRequest, collection: Collection) -> None:
    """InvalidRequestError if a request wants results ranked anew where nothing is kept to do so."""
    if request.rescore and collection.kept is None:
        name = collection.record.name
        reason = f"collection {name!r} keeps no features to rank by; it would have to be made with `keep`"
        raise InvalidRequestError.from_faults([Fault.at(("rescore",), reason)])


def rows_to_rescore(request: SearchRequest, max_limit: int) -> int:
    """How many candidates there are to be: one result more than is asked for, times the oversampling."""
    return min(math.ceil((request.offset + request.limit + 1) * request.oversampling), max_limit + 1)


def rescored(
    rankings: Sequence[Ranking],
    job: Job,
    least_score: np.float32 | None,
    collection: Collection,
    view: View,
    snapshot: Snapshot,
    cache: LatentCache,
) -> list[Ranking]:
    """The rows of the ranking of each query in the order of their exact distances in the latent space.

    Raises
    ------
    StorageError
        Kept features are missing or damaged.
    """
    wanted = [_seqs(rankings, source) for source in range(len(job.databases))]
    starts = np.cumsum([0, *map(len, wanted)])
    latents = Latents.joined(
        [
            _latents(seqs, name, collection, view, snapshot, cache)
            for name, seqs in zip(job.databases, wanted, strict=True)
        ]
    )
    found = []
    for ranking, point in zip(rankings, job.points.astype(np.float64), strict=True):
        rows = np.empty(len(ranking), dtype=np.intp)
        for source, seqs in enumerate(wanted):
            here = ranking.databases == source
            rows[here] = starts[source] + np.searchsorted(seqs, ranking.seqs[here])
        keys, distances, scores = latents.take(rows).distances(point, job.tables.metric)
        order = np.lexsort((ranking.databases, ranking.seqs, keys))
        if least_score is not None:
            order = order[scores[order] >= least_score]
        found.append(
            Ranking(
                ranking.seqs[order],
                ranking.databases[order],
                keys[order],
                distances[order],
                scores[order],
                ranking.complete,
            )
        )
    return found


def _seqs(rankings: Sequence[Ranking], source: int) -> Seqs:
    """The items that any of the rankings has from one database; ascending."""
    return np.unique(np.concatenate([ranking.seqs[ranking.databases == source] for ranking in rankings]))


def _latents(
    seqs: Seqs, database: str, collection: Collection, view: View, snapshot: Snapshot, cache: LatentCache
) -> Latents:
    """Latent vectors (n, D) of items in one database."""
    record, model = view.coder.record, view.coder.model
    key = record.number, record.generation, database
    dim = model.codebooks_.shape[2]
    return cache.find(
        key, view.tables[database].rows, dim, seqs, lambda some: _read(some, database, collection, view, snapshot)
    )


def _read(seqs: Seqs, database: str, collection: Collection, view: View, snapshot: Snapshot) -> Latents:
    """Latent vectors of items, from the features that are kept of them."""
    layout, model = collection.kept, view.coder.model
    if layout is None:  # `check_rescoring` has seen to it
        raise RuntimeError("nothing is kept")
    records = dict(snapshot.kept(seqs.tolist()))
    if len(records) != len(seqs):
        raise StorageError(f"collection {collection.record.name!r}: kept features are missing; index the items again")
    features = layout.unpack([records[seq] for seq in seqs.tolist()], None if database == PAIR else [database])
    rows: NDArray[np.intp] = np.minimum(np.arange(-(-len(seqs) // _BLOCK) * _BLOCK), len(seqs) - 1)
    arrays = {
        name: np.where(features.present[name][:, None], array, np.float32(np.nan))[rows]
        for name, array in features.arrays.items()
    }
    return Latents.of(model.project(arrays)[: len(seqs)])
