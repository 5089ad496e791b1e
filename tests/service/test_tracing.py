"""Traces are sent to where the settings say."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from service.app import create_app
from service.errors import SettingError
from service.settings import Settings
from tests.service.harness import InProcess, features


@pytest.fixture
def collector():
    """A server that takes traces: its address, and the requests that it was sent."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()
        thread.join()


def test_requests_are_traced_by_route_and_without_their_bodies(collector, tmp_path):
    url, received = collector
    service = InProcess(tmp_path / "data", otel_endpoint=f"{url}/v1/traces")
    service.create()
    service.post("/collections/default/search", {"query": features(0), "filter": {"must": [{"ids": ["hush"]}]}})
    service.close()  # sends what is left
    assert {path for path, _ in received} == {"/v1/traces"}
    spans = []
    for _, body in received:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            assert "ccq-search" in [attribute.value.string_value for attribute in resource.resource.attributes]
            spans += [span for scope in resource.scope_spans for span in scope.spans]
        assert b"hush" not in body
    assert {"PUT /models/{model}", "POST /collections/{collection}/search"} <= {span.name for span in spans}


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingError, match=r"pip install 'ccq-search\[otel\]'"):
        create_app(Settings(data=tmp_path, otel_endpoint="http://127.0.0.1:9/v1/traces"))
    create_app(Settings(data=tmp_path))
