"""Experiment `search-time`: milliseconds a query, CCQ's scan beside Hamming scans (the paper's Figure 6d).

One query at a time, one thread, everything from the query's features (CCQ) or its packed code (Hamming) to the ids of
the best 50. The Hamming scans are Faiss' (`faiss-cpu`, extra `bench`) and, where there, the NumPy one of
`benchmarks.rivals`, which is written to be exact and short, not fast.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.paper.methods import DEFAULTS, HammingSearch
from benchmarks.paper.plan import Plan
from benchmarks.paper.results import Results, Value
from benchmarks.paper.synthetic import SyntheticPairs
from ccq_core import CCQ, CodeIndex, simd

NAME = "search-time"
KEYS = ("method", "bits", "items")
BITS = 32
K = 50
SIZES = (10_000, 100_000, 1_000_000)
HAMMING, HAMMING_FAISS = "Hamming (NumPy)", "Hamming (Faiss)"
_QUERIES = 100
_SECONDS = 10.0
_TRAINING = 10_000
_CHUNK = 50_000


def run(plan: Plan, sizes: Sequence[int] = SIZES) -> None:
    """Measure what `search-time.csv` lacks."""
    results = Results(plan.output / f"{NAME}.csv", KEYS)
    rng = np.random.default_rng(0)
    queries = rng.integers(0, 256, (_QUERIES, BITS // 8), dtype=np.uint8)
    for n in sizes:
        made = hamming_scans(rng.integers(0, 256, (n, BITS // 8), dtype=np.uint8))
        searches: dict[str, Callable[[int], object]] = {
            name: partial(_one_code, search, queries) for name, search in made.items()
        }
        keys: dict[str, dict[str, Value]] = {
            name: {"method": name, "bits": BITS, "items": n} for name in (DEFAULTS, *searches)
        }
        missing = [name for name, key in keys.items() if key not in results]
        if DEFAULTS in missing:
            plan.say(f"{NAME}: encoding {n:,} items")
            searches[DEFAULTS] = _ccq_search(n)
        for name in missing:
            plan.say(f"{NAME}: {name}, {n:,} items")
            with one_thread():
                results.add([{**keys[name], "value": mean_milliseconds(searches[name])}])


def hamming_scans(codes: NDArray[np.uint8]) -> dict[str, Callable[[NDArray[np.uint8]], object]]:
    """Searches of packed codes (n, bits / 8) for the best 50 of packed queries (q, bits / 8), by name."""
    searches: dict[str, Callable[[NDArray[np.uint8]], object]] = {}
    if importlib.util.find_spec("benchmarks.rivals") is not None:
        scan: HammingSearch = importlib.import_module("benchmarks.rivals.hamming").hamming_search
        searches[HAMMING] = lambda queries: scan(queries, codes, K)
    if importlib.util.find_spec("faiss") is not None:
        faiss = importlib.import_module("faiss")
        index = faiss.IndexBinaryFlat(8 * codes.shape[1])
        index.add(codes)
        searches[HAMMING_FAISS] = lambda queries: index.search(queries, K)
    return searches


def mean_milliseconds(search: Callable[[int], object], queries: int = _QUERIES, seconds: float = _SECONDS) -> float:
    """Mean over queries 0, 1, ..., as many as fit into `seconds`, after two that do not count."""
    for q in range(min(2, queries)):
        search(q)
    took: list[float] = []
    for q in range(queries):
        start = time.perf_counter()
        search(q)
        took.append(time.perf_counter() - start)
        if sum(took) > seconds:
            break
    return 1e3 * sum(took) / len(took)


def _one_code(search: Callable[[NDArray[np.uint8]], object], queries: NDArray[np.uint8], q: int) -> object:
    return search(queries[q : q + 1])


def _ccq_search(n: int) -> Callable[[int], object]:
    pairs = SyntheticPairs(_TRAINING, (64, 64), seed=0)
    model = CCQ(bits=BITS, seed=0, iterations=10).fit(pairs.features(0, _TRAINING))
    index = CodeIndex(model)
    items = SyntheticPairs(n, (64, 64), seed=1)
    for lo in range(0, n, _CHUNK):
        hi = min(n, lo + _CHUNK)
        index.add(range(lo, hi), model.encode({"image": items.features(lo, hi)["image"]}))
    texts = SyntheticPairs(_QUERIES, (64, 64), seed=2).features(0, _QUERIES)["text"]

    def search(q: int) -> object:
        return index.search({"text": texts[q : q + 1]}, K)

    return search


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for our kernels, for BLAS and for OpenMP (Faiss)."""
    before = simd.get_threads()
    simd.set_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        simd.set_threads(before)
