"""Addresses and signals: two servers on one address, and requests that do not end in time."""

import json
import socket
import time

import httpx
import pytest

from service.errors import AddressError
from service.server import _bind
from tests.service.harness import ServerProcess, assert_problem, item


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_an_address_belongs_to_one_from_the_start(host):
    with _bind(host, 0) as first, pytest.raises(AddressError, match="Address already in use"):
        _bind(host, first.getsockname()[1])


class HalfRequest:
    """A request whose body stops half-way, once the server waits for the rest; `finish` gives what came back."""

    def __init__(self, server):
        body = json.dumps({"items": [item(0)]}).encode()
        head = (
            f"POST /index HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Expect: 100-continue\r\n\r\n"
        )
        self._connection = socket.create_connection(("127.0.0.1", httpx.URL(server.url).port), timeout=60)
        self._connection.sendall(head.encode() + body[:100])
        assert self._connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # said when the body is asked for

    def finish(self):
        with self._connection:
            received = b"".join(iter(lambda: self._connection.recv(65536), b""))
        head, _, body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        return httpx.Response(int(status.split()[1]), headers=[line.split(": ", 1) for line in lines], content=body)


def listens(server):
    try:
        return httpx.get(server.url + "/livez").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def start(tmp_path, model_path):
    """Starts a server; its standard error goes to a file."""
    servers = []

    def start(**environment):
        servers.append(ServerProcess(tmp_path / "data", model_path, stderr=tmp_path / "stderr", **environment))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()


def test_a_request_that_does_not_end_in_time_gets_a_problem(start, tmp_path):
    server = start(CCQ_SHUTDOWN_SECONDS="1")
    request = HalfRequest(server)
    assert server.stop() == 0
    problem = assert_problem(request.finish(), 503, "unavailable")
    assert "server stops" in problem["detail"]
    assert "Traceback" not in (tmp_path / "stderr").read_text()
    again = start()
    assert again.client.get("/collections/default").json()["items"] == 0


def test_a_second_signal_ends_the_wait(start, tmp_path):
    server = start(CCQ_SHUTDOWN_SECONDS="25")
    request = HalfRequest(server)
    started = time.monotonic()
    server.process.terminate()
    while listens(server):
        time.sleep(0.05)
    assert server.process.poll() is None
    assert server.stop() == 0
    assert time.monotonic() - started < 10
    assert_problem(request.finish(), 503, "unavailable")
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_head_is_answered_as_get_without_a_body(start):
    server = start()
    for path in ("/livez", "/items", "/items/nobody", "/models/tiny?file=true", "/index"):
        head, get = server.client.head(path), server.client.get(path)
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
    assert server.client.get("/livez").status_code == 200  # the connection is in order


def test_a_request_whose_body_does_not_arrive_gets_a_problem(start):
    server = start(CCQ_REQUEST_SECONDS="0.5", CCQ_MAX_WAITING="1")
    assert_problem(HalfRequest(server).finish(), 503, "timeout")
    assert server.client.get("/items").status_code == 200  # it made room
    assert server.stop() == 0
