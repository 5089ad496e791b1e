"""Faiss, where it is installed (extra `bench`), measured in the same run on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _faiss() -> Any:
    if find_spec("faiss") is None:
        return None
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss


def scan(m: int, n: int, queries: int, k: int, dim: int) -> dict[str, float] | None:
    """ns per item and query of Faiss' indexes for such codes, over random ones; None where it is not installed."""
    faiss = _faiss()
    if faiss is None:
        return None
    dim = -(-dim // (2 * m)) * 2 * m  # IndexPQ takes multiples alone; a scan does not depend on it
    rng = np.random.default_rng(0)
    training = rng.standard_normal((4096, dim)).astype(np.float32)
    rq = faiss.IndexResidualQuantizer(dim, m, 8, faiss.METRIC_L2, faiss.AdditiveQuantizer.ST_norm_qint8)
    rq.rq.max_beam_size = 1
    rq.rq.cp.niter, rq.rq.cp.min_points_per_centroid = 2, 1
    rq.train(training)
    pq = faiss.IndexPQ(dim, 2 * m, 4)
    pq.pq.cp.niter = 2
    pq.train(training)
    result = {}
    for name, index in (("RQ 8 bit", rq), ("FastScan 4 bit", pq)):
        width = index.code_size
        faiss.copy_array_to_vector(rng.integers(0, 256, n * width, dtype=np.uint8), index.codes)
        index.ntotal = n
        searched = faiss.IndexPQFastScan(index) if index is pq else index
        query = rng.standard_normal((queries, dim)).astype(np.float32)
        seconds = []
        for _ in range(4):
            start = time.perf_counter()
            searched.search(query, k)
            seconds.append(time.perf_counter() - start)
        result[name] = median(seconds[1:]) / n / queries * 1e9
    return result


def encoders(m: int, training: Array) -> list[tuple[str, Array, dict[str, Callable[[Array], Array]]]]:
    """For each of Faiss' additive quantizers name, codebooks (M, 256, D), and encoders from points to codes (n, M)."""
    faiss = _faiss()
    if faiss is None:
        return []
    dim = training.shape[1]
    lsq, rq = faiss.LocalSearchQuantizer(dim, m, 8), faiss.ResidualQuantizer(dim, m, 8)
    lsq.train_iters, lsq.train_ils_iters, rq.cp.niter = 8, 4, 10
    found = []
    for name, quantizer in (("LSQ", lsq), ("RQ", rq)):
        quantizer.train(training)
        codebooks = faiss.vector_to_array(quantizer.codebooks).reshape(m, 256, dim).copy()
        found.append((name, codebooks, _lsq_encoders(lsq, m) if quantizer is lsq else _rq_encoders(rq, m)))
    return found


def _lsq_encoders(lsq: Any, m: int) -> dict[str, Callable[[Array], Array]]:
    def encode(x: Array, rounds: int) -> Array:
        lsq.encode_ils_iters = rounds
        return np.asarray(lsq.compute_codes(x)).reshape(len(x), m)

    return {f"LSQ {rounds}": partial(encode, rounds=rounds) for rounds in (4, 16)}


def _rq_encoders(rq: Any, m: int) -> dict[str, Callable[[Array], Array]]:
    def encode(x: Array, beam: int) -> Array:
        rq.max_beam_size = beam
        rq.use_beam_LUT = 1
        rq.compute_codebook_tables()
        return np.asarray(rq.compute_codes(x)).reshape(len(x), m)

    return {f"RQ beam {beam}": partial(encode, beam=beam) for beam in (5, 16)}


def trainers(m: int) -> dict[str, Callable[[Array], tuple[Array, Array]]]:
    """Faiss' LSQ trainer with its own settings: points to codebooks and codes."""
    faiss = _faiss()
    if faiss is None:
        return {}

    def lsq(x: Array) -> tuple[Array, Array]:
        quantizer = faiss.LocalSearchQuantizer(x.shape[1], m, 8)
        quantizer.train(x)
        codebooks = faiss.vector_to_array(quantizer.codebooks).reshape(m, 256, x.shape[1]).copy()
        return codebooks, np.asarray(quantizer.compute_codes(x)).reshape(len(x), m)

    return {"LSQ": lsq}
