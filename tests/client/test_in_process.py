"""A service in this process as the other end of a client."""

import asyncio

import pytest

from ccq_client import AsyncClient, Client, TransportError, errors
from ccq_client.in_process import AppTransport
from service.app import create_app
from service.settings import Settings
from tests.service.harness import MODEL_FILE, PAIRS


def test_a_client_starts_and_ends_the_app(tmp_path):
    for turn in range(2):  # a second service on the same data is refused while the first runs
        with Client.for_app(create_app(Settings(data=tmp_path)), collection="shop") as client:
            if turn == 0:
                client.models.upload("tiny", MODEL_FILE)
                client.collections.create("shop", "tiny")
                client.index([1], {"text": PAIRS["text"][:1]})
            while not client.ready():
                pass
            assert [item.id for item in client.items()] == ["1"]


def test_the_same_with_coroutines(tmp_path):
    async def turn():
        async with AsyncClient.for_app(create_app(Settings(data=tmp_path))) as client:
            await asyncio.gather(*(client.version() for _ in range(20)))
            return await client.models.list()

    assert asyncio.run(turn()) == []
    assert asyncio.run(turn()) == []


def test_a_client_that_asked_nothing_ends_nothing(tmp_path):
    Client.for_app(create_app(Settings(data=tmp_path))).close()
    asyncio.run(AsyncClient.for_app(create_app(Settings(data=tmp_path))).close())
    assert list(tmp_path.iterdir()) == []


def test_an_app_that_does_not_start_says_why(tmp_path):
    app = create_app(Settings(data=tmp_path))
    with Client.for_app(app) as first:
        first.version()
        with (
            Client.for_app(create_app(Settings(data=tmp_path))) as second,
            pytest.raises(Exception, match=r"in use|another"),
        ):
            second.version()


def test_an_app_that_fails_silently_is_told():
    async def silent(scope, receive, send):
        pass

    with Client.for_app(silent) as client, pytest.raises(TransportError, match="the app did not start"):
        client.version()


def test_an_error_that_nobody_foresaw_is_the_services(tmp_path):
    app = create_app(Settings(data=tmp_path))

    @app.get("/broken", tags=["x"])
    def broken():
        raise ZeroDivisionError

    with Client.for_app(app) as client, pytest.raises(errors.ServerError) as caught:
        client.request("GET", "/broken")
    assert caught.value.code == "internal_error"


def test_a_transport_can_be_closed_twice(tmp_path):
    transport = AppTransport(create_app(Settings(data=tmp_path)))
    with Client("http://x", transport=transport) as client:
        client.version()
    transport.close()
