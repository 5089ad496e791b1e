"""Searches that take the shortcut get what the router would have given them."""

import pytest

from service import shortcut
from tests.service.harness import assert_problem, features

BODIES = [
    {"query": features(1), "limit": 3},
    {"query": {"image": [1.0]}},
    {"query_id": "nobody"},
    {"query": features(1), "database": "sound"},
    {},
]


@pytest.fixture
def taken(monkeypatch):
    """How many requests have taken the shortcut."""
    calls = []
    search = shortcut.items.search

    async def noted(*given):
        calls.append(given)
        return await search(*given)

    monkeypatch.setattr(shortcut.items, "search", noted)
    return calls


def shown(response):
    body = {**response.json(), "took_ms": 0, "request_id": ""}
    return response.status_code, response.headers["content-type"], body


@pytest.mark.parametrize("path", ["/search", "/collections/default/search", "/collections/no-such/search"])
@pytest.mark.parametrize("body", BODIES)
def test_a_search_by_the_shortcut_is_as_by_the_router(filled, taken, monkeypatch, path, body):
    short = filled.post(path, body)
    assert len(taken) == 1
    with monkeypatch.context() as patch:
        patch.setattr(shortcut, "_PATH", shortcut.re.compile("never"))
        long = filled.post(path, body)
    assert len(taken) == 1
    assert shown(short) == shown(long)


def test_errors_of_the_body_are_the_same(filled, monkeypatch):
    sent = [
        {"content": b"{", "headers": {"Content-Type": "application/json"}},
        {"content": b"{}", "headers": {"Content-Type": "text/plain"}},
        {"content": b"", "headers": {"Content-Type": "application/json"}},
        {"content": b"{}", "headers": {"Content-Type": "application/json", "Content-Encoding": "gzip"}},
    ]
    short = [shown(filled.request("POST", "/search", **rest)) for rest in sent]
    monkeypatch.setattr(shortcut, "_PATH", shortcut.re.compile("never"))
    assert [shown(filled.request("POST", "/search", **rest)) for rest in sent] == short
    assert [status for status, *_ in short] == [400, 415, 400, 415]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/search", 405, "method_not_allowed"),
        ("POST", "/search/", 404, "route_not_found"),
        ("POST", "/collections/-bad/search", 422, "invalid_request"),
        ("POST", "/collections/default/search/x", 404, "route_not_found"),
        ("POST", "/collections/default%0A/search", 422, "invalid_request"),
    ],
)
def test_what_is_no_search_goes_to_the_router(filled, taken, method, path, status, code):
    assert_problem(filled.request(method, path, json=BODIES[0]), status, code)
    assert taken == []


def test_with_traces_there_is_no_shortcut(taken, tmp_path):
    from tests.service.harness import InProcess, fill

    service = InProcess(tmp_path / "data", otel_endpoint="http://127.0.0.1:1")
    try:
        service.create()
        fill(service)
        assert service.post("/search", BODIES[0]).status_code == 200
        assert taken == []
    finally:
        service.close()
