"""GET /metrics: it can be read by Prometheus, counts right, and has no more labels than there are routes."""

import json
import re
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service import metrics
from service.store.sqlite import SQLiteStore
from tests.service.harness import features, item

DOCKER = Path(__file__).parents[2] / "docker"


def scrape(service):
    """The samples of /metrics by name and labels."""
    response = service.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


@pytest.fixture
def grown(filled):
    """What each sample grew by since the test began."""
    before = scrape(filled)

    def grown(name, **labels):
        key = name, frozenset(labels.items())
        return scrape(filled)[key] - before.get(key, 0)

    return grown


def test_requests_are_counted_by_route_method_and_status(filled, grown):
    for _ in range(3):
        filled.post("/search", {"query": features(0)})
    filled.post("/search", {})
    filled.post("/collections/default/search", {"query": features(0)})
    filled.get("/items/item-1")
    filled.get("/items/nobody")
    filled.get("/collections/default/items/item-1")
    filled.get("/collections/default")
    assert grown("ccq_requests_total", route="/search", method="POST", status="200") == 3
    assert grown("ccq_requests_total", route="/search", method="POST", status="422") == 1
    inner = "/collections/{collection}"
    assert grown("ccq_requests_total", route=f"{inner}/search", method="POST", status="200") == 1
    assert grown("ccq_requests_total", route="/items/{id}", method="GET", status="200") == 1
    assert grown("ccq_requests_total", route="/items/{id}", method="GET", status="404") == 1
    assert grown("ccq_requests_total", route=f"{inner}/items/{{id}}", method="GET", status="200") == 1
    assert grown("ccq_requests_total", route=inner, method="GET", status="200") == 1
    assert grown("ccq_request_seconds_count", route="/search") == 4
    assert 0 < grown("ccq_request_seconds_sum", route="/search") < 60


def test_the_routes_are_those_of_the_document(filled, grown):
    for method, path in [(method, path) for path, found in filled.app.openapi()["paths"].items() for method in found]:
        concrete = path.replace("{id}", "x").replace("{collection}", "nowhere").replace("{model}", "nothing")
        filled.request(method.upper(), concrete)
        routes = {dict(labels)["route"] for name, labels in scrape(filled) if name == "ccq_requests_total"}
        assert path in routes


def test_whatever_clients_send_labels_stay_few(filled, grown):
    for i in range(20):
        filled.get(f"/nothing/{i}")
        filled.request(f"VERB{i}", "/search")
        filled.request(f"VERB{i}", f"/none/{i}")
        filled.get(f"/collections/c{i}/items/x{i}")
    assert grown("ccq_requests_total", route="unknown", method="GET", status="404") == 20
    assert grown("ccq_requests_total", route="unknown", method="other", status="404") == 20
    assert grown("ccq_requests_total", route="/search", method="other", status="405") == 20
    values = [value for _, labels in scrape(filled) for value in dict(labels).values()]
    assert not [value for value in values if re.search(r"VERB|c7|x7|none", value)]


def test_head_is_counted_as_such(filled, grown):
    filled.request("HEAD", "/items")
    assert grown("ccq_requests_total", route="/items", method="HEAD", status="200") == 1


def test_unforeseen_errors_are_counted(filled, grown, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteStore, "snapshot", fail)
        assert filled.post("/search", {"query": features(0)}).status_code == 500
    assert grown("ccq_requests_total", route="/search", method="POST", status="500") == 1


def test_requests_in_progress_go_up_and_down(filled):
    assert scrape(filled)["ccq_requests_in_progress", frozenset()] == 1  # the one that asks


def test_rows_and_bytes_that_searches_go_through(filled, grown):
    width = filled.catalog.collection("default").view.tables["image"].width
    filled.post("/search", {"query": features(0), "database": "image"})  # 40 rows
    assert grown("ccq_rows_scanned_total") == 40
    assert grown("ccq_bytes_scanned_total") == 40 * width
    filled.post("/search", {"queries": [features(0), features(1)], "database": ["image", "pair"]})  # 60 rows, twice
    assert grown("ccq_rows_scanned_total") == 40 + 120
    assert grown("ccq_bytes_scanned_total") == (40 + 60) * width
    filled.post("/search", {"query": features(0), "database": "text", "filter": {"must": [{"ids": ["item-1"]}]}})
    assert grown("ccq_rows_scanned_total") == 161
    assert grown("ccq_searches_per_pass_count") == 3
    assert grown("ccq_searches_per_pass_sum") == 3


def test_what_collections_hold(filled):
    width = filled.catalog.collection("default").view.tables["image"].width
    found = scrape(filled)
    labels = frozenset({("collection", "default")})
    assert found["ccq_items", labels] == 60
    assert found["ccq_code_bytes", labels] == 100 * width
    filled.ok("POST", "/index", {"items": [item(100)]})
    assert scrape(filled)["ccq_items", labels] == 61
    filled.delete("/collections/default")
    assert ("ccq_items", labels) not in scrape(filled)


def test_the_process_is_measured(filled):
    found = scrape(filled)
    assert found["process_resident_memory_bytes", frozenset()] > 1 << 20
    assert abs(found["process_start_time_seconds", frozenset()] - time.time()) < 86_400


def test_commits_are_measured(filled):
    def slow():
        """Commits of 10 to 30 seconds, of which the server, that may commit meanwhile to tidy up, makes none."""
        now = scrape(filled)
        fast, all_ = (now["ccq_commit_seconds_bucket", frozenset({("le", le)})] for le in ("10.0", "30.0"))
        return all_ - fast

    before = slow()
    metrics.committed(20.0)
    assert slow() == before + 1


def test_the_dashboard_shows_what_there_is(filled):
    filled.get("/items")
    names = {name for name, _ in scrape(filled)}
    dashboard = json.loads((DOCKER / "grafana/dashboards/ccq.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {name for query in queries for name in re.findall(r"\b(?:ccq|process)_\w+", query)}
    assert len(asked) > 8
    assert asked <= names
