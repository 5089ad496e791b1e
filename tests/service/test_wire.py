"""Bodies over a real socket: chunked, cut off, of another length than announced, and what is no HTTP at all."""

import json
import random
import socket
import time

import pytest

from service.problems import Problem
from tests.service.harness import ServerProcess, features, item

INDEX = json.dumps({"items": [item(1)]}).encode()
HEAD = b"POST /index HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory, model_path):
    server = ServerProcess(tmp_path_factory.mktemp("wire") / "data", model_path, CCQ_REQUEST_SECONDS="2")
    server.wait_until_ready()
    yield server
    server.kill()


def talk(server, *parts, wait=20.0, end=False):
    """What the server says to these bytes, until it closes the connection or says nothing for so many seconds.

    `end`: tell it that no more will come. It then answers nothing any more.
    """
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        said = b""
        try:
            for part in parts:
                connection.sendall(part)
            if end:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                said += piece
        except (ConnectionError, TimeoutError):
            pass
        return said


def chunked(body, *sizes):
    """A body in chunks."""
    pieces, at = [], 0
    for size in (*sizes, len(body)):
        piece = body[at : at + size]
        at += size
        if piece:
            pieces.append(b"%x\r\n%s\r\n" % (len(piece), piece))
    return b"".join(pieces) + b"0\r\n\r\n"


def assert_answer(said):
    """Nothing, the protocol's own refusal of what is no HTTP, a success, or a problem of the one shape; its status."""
    if not said:
        return None
    head, _, body = said.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    assert status < 500 or (status == 503 and b'"timeout"' in body), said
    if status >= 400 and body != b"Invalid HTTP request received.":
        assert b"application/problem+json" in head
        Problem.model_validate_json(body, strict=True)
    return status


def items(server):
    return server.client.get("/collections/default").json()["items"]


@pytest.mark.parametrize("sizes", [(), (1,), (1, 1, 1), (7, 4096), (100_000,)])
def test_chunked_bodies(server, sizes):
    close = b"Connection: close\r\n"
    assert (
        assert_answer(talk(server, HEAD, close, b"Transfer-Encoding: chunked\r\n\r\n", chunked(INDEX, *sizes))) == 200
    )


@pytest.mark.parametrize("length", [0, 1, 100, len(INDEX) - 1])
def test_bodies_that_end_too_soon_change_nothing(server, length):
    before = server.client.get("/items/item-1").status_code, items(server)
    new = INDEX.replace(b"item-1", b"item-9")
    announced = b"Content-Length: %d\r\n\r\n" % len(new)
    assert assert_answer(talk(server, HEAD, announced, new[:length], end=True)) in (None, 400)
    cut = chunked(new)[: length + 4]
    assert assert_answer(talk(server, HEAD, b"Transfer-Encoding: chunked\r\n\r\n", cut, end=True)) in (None, 400)
    assert (server.client.get("/items/item-1").status_code, items(server)) == before


def test_a_body_that_never_ends_is_not_waited_for(server):
    before = items(server)
    said = talk(server, HEAD, b"Connection: close\r\nContent-Length: 1000\r\n\r\n", INDEX[:50])
    assert assert_answer(said) == 503
    assert items(server) == before


WRONG = [
    b"\x00" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: x\r\n : y\r\n\r\n",
    HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked(b"{}"),
    HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    HEAD + b"Expect: nonsense\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    HEAD + b"Content-Length: 99999999999999999999999\r\nConnection: close\r\n\r\n{}",
    b"GET /items/\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET http://elsewhere/livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /livez HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"Connection: close\r\n\r\n",
    b"GET /livez?" + b"%zz&" * 1000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
]


@pytest.mark.parametrize("sent", WRONG, ids=range(len(WRONG)))
def test_what_is_hardly_http(server, sent):
    assert_answer(talk(server, sent, wait=0.3))
    assert server.client.get("/livez").status_code == 200


def test_requests_with_random_damage(server):
    rng = random.Random(3)
    body = json.dumps({"query": features(1), "limit": 2}).encode()
    good = (
        b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    assert assert_answer(talk(server, good)) == 200
    for _ in range(100):
        sent = bytearray(good)
        for _ in range(rng.choice([1, 1, 3])):
            sent[rng.randrange(len(sent))] = rng.randrange(256)
        cut = rng.choice([len(sent), len(sent), rng.randrange(len(sent))])
        assert_answer(talk(server, bytes(sent[:cut]), wait=0.1))
    assert server.client.get("/livez").status_code == 200


def test_a_response_goes_out_in_one_piece(server):
    """Head and body together: a client that reads once has both."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        for _ in range(20):
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert body


def closed_after(server, *parts):
    """Seconds until the server closes a connection on which these bytes came, one part after the other."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        begun = time.monotonic()
        for part in parts:
            connection.sendall(part)
            time.sleep(0.2)
        while connection.recv(65536):
            pass
        return time.monotonic() - begun


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"GET /livez HT",),
        (b"GET /livez HTTP/1.1\r\n", b"Host: x\r\n", b"A: b\r\n", b"C: d\r\n"),
        (b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /livez HTTP/1.1\r\n"),
    ],
)
def test_a_head_that_does_not_come_is_not_waited_for(server, parts):
    assert 1.5 < closed_after(server, *parts) < 15  # CCQ_REQUEST_SECONDS is 2


def test_a_connection_that_is_used_is_not_closed(server):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        for _ in range(6):  # for longer than a head may take
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            time.sleep(0.6)
