"""Log lines: JSON or text, with the request's id; every request, and those that are slow."""

import io
import json
import logging
import subprocess
import sys

import pytest

from service import logs, requestid
from service.settings import Settings
from service.store.sqlite import SQLiteStore
from tests.service.harness import InProcess, ServerProcess, features, fill, item


@pytest.fixture
def lines():
    """What is logged from now on, as JSON; call it for the lines so far."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonLines())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel("INFO")
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def logging_all(tmp_path):
    service = InProcess(tmp_path / "data", access_log=True, slow_ms=0)
    service.create()
    fill(service)
    yield service
    service.close()


def of(lines, logger):
    return [line for line in lines if line["logger"] == logger]


def test_a_line_is_an_object(lines):
    logging.getLogger("a.b").warning("words: %s\n\u2028\ud800", {"x": 1}, extra={"n": 1, "path": object})
    (line,) = lines()
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "a.b",
        "message": "words: {'x': 1}\n\u2028\ud800",
        "request_id": None,
        "n": 1,
        "path": "<class 'object'>",
    }


def test_a_traceback_is_a_part_of_its_line(lines):
    try:
        raise ZeroDivisionError("why")
    except ZeroDivisionError:
        logging.getLogger("a").exception("failed")
    (line,) = lines()
    assert line["message"] == "failed"
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ZeroDivisionError: why")


def test_text_lines_have_the_id_where_there_is_one():
    formatter = logs.TextLines("%(levelname)s %(message)s")
    record = logging.makeLogRecord({"msg": "words", "levelname": "INFO"})
    assert formatter.format(record) == "INFO words"
    token = requestid.current.set("r1")
    try:
        assert formatter.format(record) == "INFO words [r1]"
    finally:
        requestid.current.reset(token)


def test_every_request_can_be_logged(logging_all, lines):
    logging_all.get("/items/item-1?limit=secret", headers={"X-Request-Id": "r1"})
    logging_all.request("HEAD", "/a%0Ab")
    first, second = of(lines(), "service.access")
    took = first.pop("took_ms")
    assert 0 <= took < 60_000
    assert first.pop("time")
    assert first == {
        "level": "info",
        "logger": "service.access",
        "message": f"GET /items/item-1 200, {took} ms",
        "request_id": "r1",
        "route": "/items/{id}",
        "path": "/items/item-1",
        "method": "GET",
        "status": 200,
        "caller": "anyone",
        "collection": "default",
        "client": "127.0.0.1",
    }
    assert (second["route"], second["path"], second["method"], second["status"]) == ("unknown", "/a%0Ab", "HEAD", 404)
    assert "secret" not in json.dumps(of(lines(), "service.access"))


def test_a_request_is_not_logged_unasked(filled, lines):
    filled.get("/items")
    assert of(lines(), "service.access") == of(lines(), "service.slow") == []


def test_slow_requests_are_named_without_what_is_in_them(tmp_path, lines):
    service = InProcess(tmp_path / "data", slow_ms=1)
    try:
        service.create()
        service.ok("POST", "/index", {"items": [item(i, secret="hush") for i in range(500)]})
        queries = {
            "queries": [features(0)] * 300,
            "limit": 100,
            "filter": {"must": [{"key": "secret", "exists": True}]},
        }
        service.request("POST", "/search", json=queries, headers={"X-Request-Id": "r2"})
    finally:
        service.close()
    slow = of(lines(), "service.slow")
    search = slow[-1]
    assert search["level"] == "warning"
    assert search["request_id"] == "r2"
    facts = {name: search[name] for name in ("route", "collection", "limit", "queries", "status")}
    assert facts == {"route": "/search", "collection": "default", "limit": 100, "queries": 300, "status": 200}
    assert search["took_ms"] > 1
    for words in ("'/search'", "limit 100", "queries 300"):
        assert words in search["message"]
    assert "/index" in [line["route"] for line in slow]
    assert "hush" not in json.dumps(lines())
    assert "secret" not in json.dumps(lines())


@pytest.mark.parametrize(("method", "path", "where"), [("POST", "/index", "upsert"), ("POST", "/search", "snapshot")])
def test_lines_from_threads_have_the_request_s_id(filled, monkeypatch, lines, method, path, where):
    def fail(*_, **__):
        logging.getLogger("deep").warning("here")
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteStore, where, fail)
        body = {"items": [item(0)]} if path == "/index" else {"query": features(0)}
        filled.request(method, path, json=body, headers={"X-Request-Id": "r3"})
    found = [line for line in lines() if line["logger"] != "httpx"]  # the client's own
    assert {"deep", "service.problems"} == {line["logger"] for line in found}
    assert {line["request_id"] for line in found} == {"r3"}
    logging.getLogger("later").warning("no request")
    assert lines()[-1]["request_id"] is None


@pytest.mark.parametrize("given", ["text", "json"])
def test_a_server_logs_as_it_was_told(tmp_path, model_path, given):
    log = tmp_path / "stderr"
    settings = {"CCQ_LOG_FORMAT": given, "CCQ_LOG_LEVEL": "info", "CCQ_ACCESS_LOG": "true"}
    server = ServerProcess(tmp_path / "data", model_path, stderr=log, **settings)
    server.client.get("/items", headers={"X-Request-Id": "r4"})
    assert server.stop() == 0
    text = log.read_text()
    assert "/items" in text
    if given == "json":
        found = [json.loads(line) for line in text.splitlines()]
        assert [line["request_id"] for line in found if line.get("path") == "/items"] == ["r4"]
        assert {"uvicorn", "service.access"} <= {line["logger"] for line in found}
    else:
        assert "GET /items 200" in text
        assert "[r4]" in text
    assert "uvicorn.error" not in text


def test_logging_that_is_there_stays(tmp_path):
    code = (
        "import logging, sys; logging.basicConfig(format='mine: %(message)s');"
        "from service import logs; from service.settings import Settings;"
        f"logs.configure(Settings(data={str(tmp_path)!r})); logging.warning('words')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr == "mine: words\n"


def test_there_are_two_formats(tmp_path):
    with pytest.raises(ValueError, match="'text' or 'json'"):
        Settings(data=tmp_path, log_format="xml")
