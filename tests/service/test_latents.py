"""Latent vectors in memory: how they are rounded, and what the cache keeps of them."""

import threading

import numpy as np
import pytest

from service.latents import LatentCache, Latents

DIM = 6
ROW = 2 * DIM + 12
KEY = (1, 1, "image")


def latents(seqs, dim=DIM):
    """Rows that tell whose they are."""
    return Latents(np.repeat(seqs[:, None], dim, axis=1).astype(np.int16) % 1000, np.asarray(seqs, dtype=np.float32))


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
        found = self.cache.find(key, items, DIM, wanted, work)
        assert np.array_equal(found.scales, wanted)
        assert np.array_equal(found.numbers, latents(wanted).numbers)
        missing, self.missing = self.missing, []
        return missing

    @property
    def nbytes(self):
        return sum(places.nbytes for places in self.cache._places.values())


@pytest.mark.parametrize("magnitude", [0.0, 1e-38, 1e-20, 1.0, 1e15])
def test_rounding_is_finer_than_what_is_kept(magnitude):
    z = (magnitude * np.random.default_rng(0).standard_normal((100, 16))).astype(np.float32)
    z[3] = 0
    rounded = Latents.of(z)
    again = rounded.numbers * rounded.scales[:, None].astype(np.float64)
    largest = np.abs(z).max(axis=1, keepdims=True)
    assert (np.abs(again - z) <= 0.51 / 32767 * largest + 5e-41).all()
    assert np.isfinite(rounded.scales).all()


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_distances_are_those_of_the_vectors(metric):
    rng = np.random.default_rng(1)
    z, point = rng.standard_normal((50, 16)).astype(np.float32), rng.standard_normal(16)
    z[7] = 0
    keys, distances, scores = Latents.of(z).distances(point, metric)
    if metric == "cosine":
        lengths = np.linalg.norm(z, axis=1) * np.linalg.norm(point)
        wanted = 1 - np.divide(z @ point, lengths, out=np.zeros(50), where=lengths > 0)
        assert np.array_equal(scores, 1 - distances)
    else:
        wanted = np.square(z - point).sum(axis=1)
        assert np.array_equal(scores, -distances)
    assert distances == pytest.approx(wanted, rel=3e-5, abs=1e-4)
    assert np.array_equal(np.argsort(keys, kind="stable"), np.lexsort((np.arange(50), keys)))


def test_what_was_looked_at_is_not_read_again():
    asked = Asked(1 << 20)
    assert asked.find(5, 1, 9) == [5, 1, 9]
    assert asked.find(9, 4, 1) == [4]
    assert asked.find(1, 4, 5, 9) == []
    assert asked.find(1, 4, key=(1, 2, "image")) == [1, 4], "of another generation"
    assert asked.find() == asked.find(key=(9, 9, "text")) == []


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


def test_a_failure_is_not_kept():
    asked = Asked(1 << 20)

    def fails(_):
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        asked.cache.find(KEY, 10, DIM, np.array([1, 2]), fails)
    assert asked.find(1, 2) == [1, 2]


def test_threads_may_share_it():
    asked, wrong = Asked(300 * ROW), []

    def look(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(1500):
                seqs = rng.choice(np.arange(1, 800), 20, replace=False)
                key = (int(rng.integers(3)), 0, "text")
                found = asked.cache.find(key, 800, DIM, seqs, latents)
                assert np.array_equal(found.scales, seqs)
                assert np.array_equal(found.numbers, latents(seqs).numbers)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert asked.nbytes <= 300 * ROW
