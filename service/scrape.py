"""The document of GET /metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.catalog import Catalog
from service.jobs.runner import Jobs
from service.metrics import REGISTRY
from service.store.jobrecords import State

CONTENT_TYPE = CONTENT_TYPE_LATEST


def scrape(catalog: Catalog, jobs: Jobs) -> bytes:
    """All that is counted and measured, what the collections hold now, and the jobs, in Prometheus' text format."""
    now = CollectorRegistry()
    now.register(_Collections(catalog))
    now.register(_Jobs(jobs))
    return generate_latest(REGISTRY) + generate_latest(now)


class _Collections(Collector):
    """What each loaded collection holds."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def collect(self) -> Iterator[Metric]:
        items = GaugeMetricFamily("ccq_items", "Items of a collection.", labels=["collection"])
        code_bytes = GaugeMetricFamily(
            "ccq_code_bytes", "Bytes of codes of a collection, in all its databases.", labels=["collection"]
        )
        for entry in self._catalog.entries():
            if entry.collection is not None:
                view = entry.collection.view
                items.add_metric([entry.record.name], view.items)
                code_bytes.add_metric([entry.record.name], view.code_bytes)
        yield items
        yield code_bytes


class _Jobs(Collector):
    """How many jobs there are."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("ccq_jobs", "Jobs that are listed.", labels=["kind", "state"])
        found = Counter((job.kind, job.state) for job in self._jobs.all())
        for kind in self._jobs.kinds:
            for state in get_args(State):
                family.add_metric([kind, state], found[kind, state])
        yield family
