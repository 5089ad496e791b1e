"""Traces by OpenTelemetry. FastAPI makes them itself; this sends them somewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from service.errors import SettingError

# Else every request is asked whether some package has set traces up meanwhile. Older versions of FastAPI make none.
_OFF = {"telemetry": {"tracing": False, "metrics": False, "logs": False}} if find_spec("fastapi.telemetry") else {}
_SECONDS = 3  # for which the server's end may wait where nobody takes them


@dataclass(frozen=True)
class Traces:
    """Where traces go.

    Attributes
    ----------
    options:
        Arguments of `FastAPI`.
    sent:
        Whether there are any.
    close:
        Sends what is left.
    """

    options: dict[str, Any] = field(default_factory=dict)
    sent: bool = False
    close: Callable[[], None] = lambda: None


def to(endpoint: str | None) -> Traces:
    """Traces that are sent by OTLP over HTTP, or none; SettingError if the packages for it are not installed."""
    if endpoint is None:
        return Traces(_OFF)
    try:
        import fastapi.telemetry  # noqa: F401 (older versions of FastAPI lack it)
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingError("otel_endpoint needs OpenTelemetry: pip install 'ccq-search[otel]'") from None
    provider = TracerProvider(resource=Resource.create({"service.name": "ccq-search"}))
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    telemetry = {"tracer_provider": provider, "metrics": False, "logs": False}
    return Traces({"telemetry": telemetry}, sent=True, close=provider.shutdown)
