"""Rankings: the best rows of one database or of several, and as many of them as it takes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccq_core.distances import DistanceTables, Metric
from ccq_core.features import Float32
from ccq_core.scan import Keys
from service import metrics
from service.store.interface import Seqs
from service.tables import View


class Job(NamedTuple):
    """What to search for.

    Attributes
    ----------
    metric:
        One that the model can rank by.
    points:
        Latent vectors (q, D) of q queries.
    databases:
        Names of one or several databases, searched as one.
    limit:
        How many rows; fewer come only where fewer qualify.
    allowed:
        Ascending sequence numbers of the items to look at; all by default.
    exclude:
        Distinct sequence numbers of items to leave out.
    least_score:
        The least score of a row that qualifies.
    """

    metric: Metric
    points: Float32
    databases: tuple[str, ...]
    limit: int
    allowed: Seqs | None = None
    exclude: tuple[int, ...] = ()
    least_score: np.float32 | None = None

    @property
    def wanted(self) -> int:
        """How many rows from each database, of which those left out may be some."""
        return self.limit + len(self.exclude)


@dataclass(slots=True, eq=False)  # not frozen: that is three times as slow to make
class Ranking:
    """The best rows for one query, best first; ties by order of insertion, then of databases.

    Attributes
    ----------
    seqs:
        (k,) sequence numbers of the items.
    databases:
        (k,) position of each row's database in the request.
    keys:
        (k,) float64, by which rows are ranked.
    distances, scores:
        (k,) float32.
    complete:
        Whether no further rows qualify.
    """

    seqs: Seqs
    databases: NDArray[np.intp]
    keys: Keys
    distances: Float32
    scores: Float32
    complete: bool

    def __len__(self) -> int:
        return len(self.seqs)

    def take(self, rows: slice | NDArray[np.intp]) -> Ranking:
        """Some of the rows."""
        return Ranking(
            self.seqs[rows],
            self.databases[rows],
            self.keys[rows],
            self.distances[rows],
            self.scores[rows],
            self.complete,
        )


def rank(view: View, jobs: Sequence[Job]) -> list[list[Ranking]]:
    """For each job one ranking per query."""
    rankings: list[list[Ranking]] = [[] for _ in jobs]
    for together in _groups(jobs):
        first = jobs[together[0]]
        points = np.concatenate([jobs[i].points for i in together])
        tables = view.coder.model.distance_tables_latent(points, metric=first.metric)
        metrics.scanned([view.tables[name] for name in first.databases], len(tables), first.allowed)
        found = [view.tables[name].search(tables, first.wanted, first.allowed) for name in first.databases]
        queries = [i for i in together for _ in jobs[i].points]
        parts = [_merged([hits[query] for hits in found], jobs[i]) for query, i in enumerate(queries)]
        for i, ranking in zip(queries, _rankings(parts, tables, [jobs[i] for i in queries]), strict=True):
            rankings[i].append(ranking)
    return rankings


def deepen(view: View, job: Job, ranking: Ranking, most: int | None = None) -> Iterator[Ranking]:
    """A ranking and ever longer ones: each begins with the one before and is twice as long, until one is complete.

    Parameters
    ----------
    view, job, ranking:
        What `rank` found for a job with one query.
    most:
        How many rows to stop at.
    """
    yield ranking
    while not ranking.complete and (most is None or job.limit < most):
        job = job._replace(limit=2 * job.limit if most is None else min(2 * job.limit, most))
        ((ranking,),) = rank(view, [job])
        yield ranking


def least_float32(threshold: float) -> np.float32:
    """The least float32 that is not below a number, both as they are written in decimals.

    A score of 0.7 is a float32 that lies a little below the float64 that JSON's 0.7 is read as.
    """
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
        return near if float(str(near)) >= threshold else np.nextafter(near, np.float32(np.inf))


def _groups(jobs: Sequence[Job]) -> list[list[int]]:
    """Positions of jobs that one search of the tables can serve."""
    groups: dict[Hashable, list[int]] = {}
    for i, job in enumerate(jobs):
        key = (job.metric, job.databases, job.wanted) if job.allowed is None else i
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _merged(parts: Sequence[tuple[Seqs, Keys]], job: Job) -> tuple[Seqs, NDArray[np.intp], Keys]:
    """The rows found in each database as one list, best first: sequence numbers, databases, keys."""
    if len(parts) == 1:
        ((seqs, keys),) = parts
        source = np.zeros(len(seqs), dtype=np.intp)
    else:
        seqs = np.concatenate([part[0] for part in parts])
        keys = np.concatenate([part[1] for part in parts])
        source = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        order = np.lexsort((source, seqs, keys))
        seqs, keys, source = seqs[order], keys[order], source[order]
    if job.exclude:
        others = ~np.isin(seqs, job.exclude)
        seqs, keys, source = seqs[others], keys[others], source[others]
    return seqs, source, keys


def _rankings(
    parts: Sequence[tuple[Seqs, NDArray[np.intp], Keys]], tables: DistanceTables, jobs: Sequence[Job]
) -> Iterator[Ranking]:
    """Rankings of what was found for each query, with the distances of all worked out at once."""
    counts = [min(len(seqs), job.limit) for (seqs, _, _), job in zip(parts, jobs, strict=True)]
    joined = np.concatenate([keys[:n] for (_, _, keys), n in zip(parts, counts, strict=True)])
    all_distances = tables.distances_of(joined, np.repeat(np.arange(len(parts)), counts))
    all_scores = 1 - all_distances if tables.metric == "cosine" else 0 - all_distances
    end = 0
    for (seqs, source, keys), n, job in zip(parts, counts, jobs, strict=True):
        start, end = end, end + n
        scores = all_scores[start:end]
        complete = len(seqs) < job.limit
        if job.least_score is not None and n and scores[-1] < job.least_score:
            n = int(np.count_nonzero(scores >= job.least_score))
            complete = True
        distances = all_distances[start : start + n]
        yield Ranking(seqs[:n], source[:n], keys[:n], distances, scores[:n], complete)
