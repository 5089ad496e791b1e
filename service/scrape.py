"""The document of GET /metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.catalog import Catalog
from service.metrics import REGISTRY

CONTENT_TYPE = CONTENT_TYPE_LATEST


def scrape(catalog: Catalog) -> bytes:
    """All that is counted and measured, and what the collections hold now, in Prometheus' text format."""
    collections = CollectorRegistry()
    collections.register(_Collections(catalog))
    return generate_latest(REGISTRY) + generate_latest(collections)


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
                size = sum(table.rows * table.width for table in view.tables.values())
                code_bytes.add_metric([entry.record.name], size)
        yield items
        yield code_bytes
