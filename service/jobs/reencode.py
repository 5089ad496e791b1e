"""Jobs that encode a collection anew by another model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from service.catalog import Catalog
from service.errors import CollectionLoadingError, ReencodingError
from service.jobs.kind import Context
from service.jobs.runner import Jobs
from service.reencoding import Reencoded
from service.store.jobrecords import JobRecord
from service.writing import Asked

KIND = "reencode"
_PAUSE_SECONDS = 0.05


class ReencodeJobs:
    """Does such jobs; see `service.jobs.kind.JobKind`.

    Parameters
    ----------
    catalog:
        The collections.
    """

    kind = KIND

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def run(self, context: Context) -> Mapping[str, Any]:
        """Encode the collection anew, from the beginning; once it has the model, there is nothing to do."""
        model = context.parameters["model"]
        number = context.parameters.get("collection_number")
        while True:
            try:
                collection = self._catalog.same_entry(context.target, number).loaded()
                break
            except CollectionLoadingError:  # after a restart
                context.check()
                time.sleep(_PAUSE_SECONDS)
        if collection.record.model == model:  # its server died just before it could tell
            return asdict(Reencoded(collection.view.items, context.parameters["before"], model, 0.0))
        return asdict(self._catalog.reencode(collection, model, context.progress, context.check))


def add(jobs: Jobs, catalog: Catalog, collection: str, model: str, asked: Asked | None = None) -> JobRecord:
    """Queue a job that encodes a collection by a model; with `asked` once.

    Raises
    ------
    ReencodingError
        Another for this collection is queued or running.
    JobsFullError, UnavailableError
        It cannot be queued.
    DoneBefore, KeyReusedError
        It was asked for before, or something else with the same key.

    And what `Catalog.check_reencoding` raises.
    """
    jobs.check(asked)
    record = catalog.check_reencoding(collection, model)
    for job in jobs.all():  # two at the same moment do no harm: they run one after the other
        same = job.parameters.get("collection_number") in (None, record.number)  # not of one that is deleted by now
        if (job.kind, job.target) == (KIND, collection) and same and not job.finished:
            raise ReencodingError(f"collection {collection!r} is being encoded anew already, by job {job.id}")
    parameters = {"model": model, "before": record.model, "collection_number": record.number}
    with jobs.draft(KIND) as draft:
        return jobs.add(draft, collection, parameters, asked)
