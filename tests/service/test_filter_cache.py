"""The cache of filters: what it keeps, and that searches by it are what they would be without."""

import threading

import numpy as np
import pytest

from service.filter_cache import FilterCache
from tests.service.harness import InProcess, features, item


def seqs(n):
    return np.arange(n, dtype=np.int64)


def test_it_keeps_what_was_used_last_within_its_bytes():
    cache = FilterCache(2 * (8 * 100 + 200 + 1))
    made = []

    def find(name, n=100):
        def work():
            made.append(name)
            return seqs(n)

        return cache.find((1, 1, name), work)

    for name in (b"a", b"b", b"a", b"c", b"a", b"b"):
        assert find(name).tolist() == list(range(100))
    assert made == [b"a", b"b", b"c", b"b"], "b went for c, as a had been used since"
    find(b"x", 1000)
    find(b"x", 1000)
    assert made[4:] == [b"x", b"x"], "too long to be kept"
    find(b"b")
    assert made[6:] == [], "and nothing went for it"


def test_a_failure_is_not_kept():
    cache = FilterCache(10_000)

    def fails():
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        cache.find((1, 1, b""), fails)
    assert cache.find((1, 1, b""), lambda: seqs(3)).tolist() == [0, 1, 2]


def test_of_no_bytes_it_keeps_nothing():
    cache = FilterCache(0)
    assert cache.find((1, 1, b""), lambda: seqs(0)).tolist() == []
    assert cache.find((1, 1, b""), lambda: seqs(2)).tolist() == [0, 1]


def test_threads_may_share_it():
    cache = FilterCache(50 * 300)

    def look():
        for i in range(2000):
            assert len(cache.find((1, i % 7, b"%d" % (i % 13)), lambda i=i: seqs(i % 7))) == i % 7

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = cache._entries.items()
    assert cache._size == sum(200 + len(key[-1]) + found.nbytes for key, found in kept) <= 50 * 300


@pytest.mark.parametrize("indexed", [["n"], []])
def test_every_change_of_the_collection_is_seen_by_the_same_filter(tmp_path, indexed):
    service = InProcess(tmp_path / "data")
    service.create()
    service.ok("PUT", "/collections/default", {"model": "tiny", "indexes": indexed})
    filtered = {
        "query": features(0),
        "database": "pair",
        "limit": 50,
        "filter": {"must": [{"key": "n", "range": {"gte": 2}}]},
    }

    def found():
        hits = service.post("/search", filtered).json()["results"]
        return {hit["id"] for hit in hits}

    try:
        service.post("/index", {"items": [item(i, n=i) for i in range(5)]})
        assert found() == found() == {"item-2", "item-3", "item-4"}
        service.put("/items/item-0/payload", {"n": 7})
        assert found() == {"item-0", "item-2", "item-3", "item-4"}
        service.post("/items/delete", {"ids": ["item-3"]})
        assert found() == {"item-0", "item-2", "item-4"}
        service.post("/index", {"items": [item(9, n=9), item(4, n=0)]})
        assert found() == {"item-0", "item-2", "item-9"}
    finally:
        service.close()
