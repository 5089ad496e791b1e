"""Latent vectors in memory: what the cache keeps of them."""

import threading

import numpy as np
import pytest

from ccq_core.latents import Latents
from service.latents import LatentCache

DIM = 6
ROW = 2 * DIM + 12
KEY = (1, 1, "image")
POINT = np.zeros(DIM)


def latents(seqs, dim=DIM):
    """Rows that tell whose they are."""
    return Latents(np.repeat(seqs[:, None], dim, axis=1).astype(np.int16) % 1000, np.asarray(seqs, dtype=np.float32))


def check(keys, seqs):
    """Whether these are the keys of exactly these items."""
    assert np.array_equal(keys, latents(seqs).keys(np.arange(len(seqs)), POINT, "euclidean"))


class Asked:
    """A cache, and which rows it did not have."""

    def __init__(self, most):
        self.cache = LatentCache(most)
        self.missing = []

    def find(self, *seqs, key=KEY, items=100):
        def work(some):
            self.missing.extend(some.tolist())
            return latents(some)

        wanted = np.array(seqs, dtype=np.int64)
        check(self.cache.keys(key, items, wanted, POINT, "euclidean", work), wanted)
        missing, self.missing = self.missing, []
        return missing

    @property
    def nbytes(self):
        return sum(places.nbytes for places in self.cache._places.values())


def test_what_was_looked_at_is_not_read_again():
    asked = Asked(1 << 20)
    assert asked.find(5, 1, 9) == [5, 1, 9]
    assert asked.find(9, 4, 1) == [4]
    assert asked.find(1, 4, 5, 9) == []
    assert asked.find(1, 4, key=(1, 2, "image")) == [1, 4], "of another generation"
    assert asked.find() == asked.find(key=(9, 9, "text")) == []


def test_what_an_earlier_model_made_is_let_go_of():
    asked = Asked(1 << 20)
    for key in ((1, 1, "image"), (1, 1, "text"), (2, 1, "image"), (1, 2, "image")):
        asked.find(1, 4, key=key)
    assert set(asked.cache._places) == {(2, 1, "image"), (1, 2, "image")}
    asked.find(1, key=(1, 1, "image"))  # by a search that began before
    assert set(asked.cache._places) == {(2, 1, "image"), (1, 2, "image"), (1, 1, "image")}
    asked.find(1, key=(1, 2, "text"))
    assert set(asked.cache._places) == {(2, 1, "image"), (1, 2, "image"), (1, 2, "text")}


def test_of_no_bytes_it_keeps_nothing():
    for most in (0, ROW - 1):
        asked = Asked(most)
        assert asked.find(1, 2) == asked.find(1, 2) == [1, 2]


def test_rows_that_push_each_other_out():
    asked = Asked(4 * ROW)
    assert asked.find(1, 5, 9, 2) == [1, 5, 9, 2]
    assert asked.find(9, 2) == []
    assert asked.find(1, 5) == [1, 5]
    assert asked.find(9, 5, 2) == [9]
    assert asked.nbytes <= 4 * ROW


def test_collections_that_were_used_last_stay():
    asked = Asked(2500 * ROW)  # for two collections of at least 1024 rows
    first, second, third = ((number, 0, "pair") for number in (1, 2, 3))
    assert [asked.find(7, key=key) for key in (first, second, first, second)] == [[7], [7], [], []]
    asked.find(7, key=first)
    assert asked.find(7, key=third) == [7], "for which the second went"
    assert [asked.find(7, key=key) for key in (first, third, second)] == [[], [], [7]]
    assert asked.nbytes <= 2500 * ROW


def test_places_grow_with_the_collection_up_to_the_bound():
    asked = Asked(5000 * ROW)
    sizes = []
    for items in (10, 1024, 1025, 2050, 3000, 10**6, 10**9):
        asked.find(3, items=items)
        sizes.append(asked.nbytes // ROW)
        assert asked.find(3, items=items) == []
    assert sizes == [1024, 1024, 2050, 2050, 5000, 5000, 5000]


def test_what_is_filled_in_order_is_not_read():
    asked = Asked(200 * ROW)
    first, others = np.arange(1, 40), np.arange(40, 100)
    assert asked.cache.through(KEY) is None, "before anything is looked at"
    asked.find(3)
    assert asked.cache.through(KEY) == 0
    assert not asked.cache.fill(KEY, 5, 39, first, latents(first)), "what lies between would be missing"
    assert asked.cache.fill(KEY, 0, 39, first, latents(first))
    assert asked.cache.fill(KEY, 39, 120, others, latents(others))
    assert asked.cache.through(KEY) == 120
    assert asked.find(1, 39, 40, 99, 100) == [100]
    assert asked.find(3, items=201) == [], "not all fit now, but what is there stays"
    assert asked.cache.through(KEY) is None
    assert not asked.cache.fill(KEY, 120, 121, others, latents(others))
    assert asked.find(3) == []
    assert asked.cache.through(KEY) == 120


def test_places_made_anew_are_filled_anew():
    asked = Asked(1 << 20)
    seqs = np.arange(1, 100)
    asked.find(3)
    assert asked.cache.fill(KEY, 0, 99, seqs, latents(seqs))
    assert asked.find(3, items=5000) == [3]
    assert asked.cache.through(KEY) == 0


def test_a_failure_is_not_kept():
    asked = Asked(1 << 20)

    def fails(_):
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        asked.cache.keys(KEY, 10, np.array([1, 2]), POINT, "cosine", fails)
    assert asked.find(1, 2) == [1, 2]


def test_threads_may_share_it():
    asked, wrong = Asked(300 * ROW), []

    def look(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(1500):
                seqs = rng.choice(np.arange(1, 800), 20, replace=False)
                key = (int(rng.integers(3)), 0, "text")
                check(asked.cache.keys(key, 800, seqs, POINT, "euclidean", latents), seqs)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert asked.nbytes <= 300 * ROW
