"""Connections for reading: which of them keep how much, and that those who read little take the warm one."""

from contextlib import ExitStack

import pytest

from service.store.readers import Readers
from service.store.sqlite import SQLiteStore


@pytest.fixture
def readers(tmp_path):
    store = SQLiteStore(tmp_path, cache_bytes=8 << 20)
    yield store._readers
    store.close()


def cache_kib(db):
    return -db.connection.pragma("cache_size")


def test_connections_share_the_cache_the_first_most_of_it(readers: Readers):
    with ExitStack() as stack:
        assert [cache_kib(stack.enter_context(readers.read())) for _ in range(7)] == [
            4096, 2048, 1024, 512, 256, 256, 256,
        ]  # fmt: skip
    for _ in range(3):
        with readers.read() as db:
            assert cache_kib(db) == 4096, "one reader alone has the largest"
