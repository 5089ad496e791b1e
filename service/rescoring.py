"""Results ranked anew by the features that their collection keeps: codes choose the candidates, floats order them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ccq_core import CCQ
from ccq_core.features import Float32
from ccq_core.model import PAIR
from ccq_core.scan import Keys
from service.collection import Collection
from service.errors import Fault, InvalidRequestError, StorageError
from service.ranking import Job, Ranking
from service.schemas.search import SearchRequest
from service.store.interface import Seqs, Snapshot
from service.tables import View


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
) -> list[Ranking]:
    """The rows of the ranking of each query in the order of their exact distances in the latent space.

    Raises
    ------
    StorageError
        Kept features are missing or damaged.
    """
    wanted = np.unique(np.concatenate([ranking.seqs for ranking in rankings]))
    latents = _latents(wanted, job.databases, collection, view.coder.model, snapshot)
    found = []
    for ranking, point in zip(rankings, job.points.astype(np.float64), strict=True):
        z = latents[ranking.databases, np.searchsorted(wanted, ranking.seqs)].astype(np.float64)
        keys, distances, scores = _distances(z, point, job.tables.metric)
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


def _distances(z: Keys, point: Keys, metric: str) -> tuple[Keys, Float32, Float32]:
    """Keys, distances and scores of latent vectors z (k, D) for a query (D,), both float64."""
    if metric == "cosine":
        lengths = np.linalg.norm(z, axis=1) * np.linalg.norm(point)
        keys = -np.divide(z @ point, lengths, out=np.zeros(len(z)), where=lengths > 0)
        distances = np.clip(1.0 + keys, 0.0, 2.0).astype(np.float32)
        return keys, distances, 1 - distances
    keys = np.square(z - point).sum(axis=1)
    distances = keys.astype(np.float32)
    return keys, distances, 0 - distances


def _latents(seqs: Seqs, databases: Sequence[str], collection: Collection, model: CCQ, snapshot: Snapshot) -> Float32:
    """Latent vectors (databases, n, D) of items."""
    layout = collection.kept
    if layout is None:  # `check_rescoring` has seen to it
        raise RuntimeError("nothing is kept")
    records = dict(snapshot.kept(seqs.tolist()))
    if len(records) != len(seqs):
        raise StorageError(f"collection {collection.record.name!r}: kept features are missing; index the items again")
    features = layout.unpack([records[seq] for seq in seqs.tolist()], None if PAIR in databases else databases)
    arrays = features.arrays
    if PAIR not in databases:
        return np.stack([model.project({name: arrays[name]}) for name in databases])
    everything = {
        name: np.where(features.present[name][:, None], array, np.float32(np.nan)) for name, array in arrays.items()
    }
    return np.stack([model.project(everything if name == PAIR else {name: arrays[name]}) for name in databases])
