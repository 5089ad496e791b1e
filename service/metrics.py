"""What the service counts and measures, for GET /metrics. Knows nothing of the rest, so that anything may call it.

One set for the process, as with loggers: what is counted deep down need not be handed its counter. Each label has a
bounded number of values, whatever clients send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from functools import cache

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from ccq_core.table import TableView

disable_created_metrics()  # type: ignore[no-untyped-call]

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_REQUESTS = Counter("ccq_requests", "Requests that were answered.", ["route", "method", "status"], registry=REGISTRY)
_REQUEST_SECONDS = Histogram(
    "ccq_request_seconds",
    "How long requests took, the arrival of their bodies included.",
    ["route"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
_IN_PROGRESS = Gauge("ccq_requests_in_progress", "Requests in progress or waiting.", registry=REGISTRY)
_ROWS = Counter("ccq_rows_scanned", "Code rows that searches went through, once for each query.", registry=REGISTRY)
_BYTES = Counter(
    "ccq_bytes_scanned", "Bytes of codes that searches went through, once for all queries of a pass.", registry=REGISTRY
)
_TOGETHER = Histogram(
    "ccq_searches_per_pass",
    "Requests that were answered together, in one pass over the codes.",
    buckets=(1, 2, 4, 8, 16, 32, 64),
    registry=REGISTRY,
)
_SEARCH_PROCESSES = Gauge("ccq_search_processes", "Search processes that are running.", registry=REGISTRY)
_PROCESS_ENDS = Counter(
    "ccq_search_process_ends", "Search processes that have ended; others took their places.", registry=REGISTRY
)
_COMMIT_SECONDS = Histogram(
    "ccq_commit_seconds", "How long commits took, until they were on disk.", buckets=_SECONDS, registry=REGISTRY
)

_ENCODER_SECONDS = Histogram(
    "ccq_encoder_seconds",
    "How long encoders took, of up to 32 texts or images together, by their names.",
    ["encoder"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
_ENCODED = Counter("ccq_encoded", "Texts and images that were encoded, by encoder.", ["encoder"], registry=REGISTRY)

_SNAPSHOT_TIME = Gauge(
    "ccq_snapshot_timestamp_seconds", "When the last snapshot was made; 0: there is none.", registry=REGISTRY
)
_SNAPSHOT_BYTES = Gauge("ccq_snapshot_bytes", "Size of the last snapshot.", registry=REGISTRY)
_SNAPSHOT_SECONDS = Gauge(
    "ccq_snapshot_seconds", "How long the last snapshot took; 0: none was made since the start.", registry=REGISTRY
)

_JOB_SECONDS = Histogram(
    "ccq_job_seconds",
    "How long jobs ran that have ended, their last attempt alone, by kind and how they ended.",
    ["kind", "state"],
    buckets=(1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0),
    registry=REGISTRY,
)


def began() -> None:
    """A request has come."""
    _IN_PROGRESS.inc()


def answered(route: str, method: str, status: int, seconds: float) -> None:
    """A request that had come has ended; `route` is the template of its path."""
    _IN_PROGRESS.dec()
    requests, durations = _of(route, method if method in _METHODS else "other", status)
    requests.inc()
    durations.observe(seconds)


@cache  # to look these up takes as long as to count
def _of(route: str, method: str, status: int) -> tuple[Counter, Histogram]:
    return _REQUESTS.labels(route, method, status), _REQUEST_SECONDS.labels(route)


def scanned(tables: Iterable[TableView], queries: int, allowed: Sized | None) -> None:
    """A pass over some tables begins, for so many queries; `allowed` are the only items that it looks at."""
    for table in tables:
        rows = table.rows if allowed is None else min(table.rows, len(allowed))
        _tell_scan(rows * queries, rows * table.width)


def count_scan(rows: int, size: int) -> None:
    """So many code rows were scanned, once for each query, and so many bytes of codes, once for all."""
    _ROWS.inc(rows)
    _BYTES.inc(size)


_tell_scan: Callable[[int, int], None] = count_scan


def tell_scans(to: Callable[[int, int], None]) -> None:
    """Let something else than the counters here be told of scans, as `count_scan` is: for a process without them."""
    global _tell_scan
    _tell_scan = to


def gathered(searches: int) -> None:
    """So many requests are answered together."""
    _TOGETHER.observe(searches)


def search_process_began() -> None:
    """A search process runs."""
    _SEARCH_PROCESSES.inc()


def search_process_ended() -> None:
    """A search process that ran has ended."""
    _SEARCH_PROCESSES.dec()
    _PROCESS_ENDS.inc()


def snapshot_made(when: float, size: int, seconds: float = 0) -> None:
    """The last snapshot is of this time (seconds since 1970), and has so many bytes."""
    _SNAPSHOT_TIME.set(when)
    _SNAPSHOT_BYTES.set(size)
    _SNAPSHOT_SECONDS.set(seconds)


def job_ended(kind: str, state: str, seconds: float) -> None:
    """A job of this kind ended so, and its last attempt took so long."""
    _JOB_SECONDS.labels(kind, state).observe(seconds)


def encoded(encoder: str, values: int, seconds: float) -> None:
    """An encoder took so long for so many texts or images."""
    _ENCODER_SECONDS.labels(encoder).observe(seconds)
    _ENCODED.labels(encoder).inc(values)


def committed(seconds: float) -> None:
    """A commit took so long."""
    _COMMIT_SECONDS.observe(seconds)
