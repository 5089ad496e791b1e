"""Every kernel at every level that this CPU has, against the NumPy reference: equal to the last bit, ties included."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

from ccq_core import _native, simd
from ccq_core.distances import DistanceTables
from ccq_core.errors import InvalidInputError
from ccq_core.quantizer import AdditiveQuantizer, Effort
from ccq_core.scan import Segment, reference_search, search

KINDS = ("gauss", "whole", "sorted", "outlier", "constant", "tiny", "far", "few codes", "odd norms", "zero", "huge")
SIZES = (1, 2, 9, 15, 17, 63, 64, 65, 127, 128, 129, 1000, 4095, 4097, 20_000)


@pytest.fixture(params=simd.levels()[:-1])
def level(request):
    before = simd.get_level()
    simd.set_level(request.param)
    yield request.param
    simd.set_level(before)


@pytest.fixture(params=[1, 3])
def threads(request):
    simd.set_threads(request.param)
    yield request.param
    simd.set_threads(1)


def grouped(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, P) as groups (g, P, 64); what lies behind the last row is rubbish."""
    groups = -(-len(codes) // 64)
    rows = rng.integers(0, 256, (groups * 64, codes.shape[1]), dtype=np.uint8)
    rows[: len(codes)] = codes
    return np.ascontiguousarray(rows.reshape(groups, 64, -1).transpose(0, 2, 1))


def make_case(kind: str, n: int, planes: int, queries: int, cosine: bool, live: float, rng: np.random.Generator):
    codes = rng.integers(0, 256, (n, planes), dtype=np.uint8)
    inner = rng.standard_normal((queries, planes - 1, 256)).astype(np.float32)
    norm = np.abs(rng.standard_normal(256)).astype(np.float32) + np.float32(0.1)
    match kind:
        case "whole":
            inner = np.round(2 * inner)
        case "sorted":
            inner.sort(axis=2)
            codes = codes[np.argsort(codes.astype(int).sum(axis=1), kind="stable")[:: rng.choice([-1, 1])]]
        case "outlier":  # on a codeword that no row uses
            inner[:, 0, 7] = -1e4
            codes[codes == 7] = 8
        case "constant":
            inner[:] = inner[:, :, :1]
            norm[:] = norm[0]
        case "tiny":
            inner = inner * np.float32(1e-30) + np.float32(1)
        case "far":
            inner = inner * np.float32(1e-3) - np.float32(1000)
        case "few codes":
            codes %= 3
        case "odd norms":
            norm[5], norm[6] = 1e5, 0
        case "zero":
            inner[:] = 0
        case "huge":
            inner *= np.float32(1e30)
    used = np.zeros((planes, 256), dtype=bool)
    for plane in range(planes):
        used[plane, codes[:, plane]] = True
    cuts = sorted({0, n, *rng.integers(0, n + 1, rng.integers(0, 4)).tolist()})
    selected = rng.random(n) < live
    segments = []
    for lo, hi in pairwise(cuts):
        blocks = grouped(codes[lo:hi], rng)
        mask = None
        if live < 1:
            bits = np.ones(len(blocks) * 64, dtype=bool)  # bits behind the last row are rubbish too
            bits[: hi - lo] = selected[lo:hi]
            mask = np.packbits(bits, bitorder="little").view(np.uint64)
        segments.append(Segment(blocks, hi - lo, mask))
    metric = "cosine" if cosine else "euclidean"
    tables = DistanceTables(metric, inner.astype(np.float32), norm, np.zeros(queries))
    return segments, tables, used, int(selected.sum()) if live < 1 else n


def assert_same(found, expected):
    for (positions, keys), (right_positions, right_keys) in zip(found, expected, strict=True):
        assert positions.tolist() == right_positions.tolist()
        assert keys.tobytes() == (right_keys + 0.0).tobytes() or np.array_equal(keys, right_keys)


@pytest.mark.parametrize("kind", KINDS)
def test_scan_equals_the_reference(kind, level):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(6):
        n, planes = int(rng.choice(SIZES)), int(rng.choice([2, 3, 5, 6, 7, 9, 17]))
        queries, k = int(rng.choice([1, 2, 5, 24, 33, 65])), int(rng.choice([1, 10, 50, 1000, 10_000]))
        case = make_case(kind, n, planes, queries, bool(rng.integers(2)), float(rng.choice([1, 0.8, 0.01, 0])), rng)
        segments, tables, used, rows = case
        expected = reference_search(segments, tables, k)
        assert_same(search(segments, tables, k, rows, used), expected)
        assert_same(search(segments, tables, k, rows), expected)


@lru_cache
def large_case(cosine):
    case = make_case("whole", 600_000, 3, 4, cosine, 0.9, np.random.default_rng(5))
    return case, reference_search(case[0], case[1], 20)


@pytest.mark.parametrize("cosine", [False, True])
def test_threads_do_not_show(level, threads, cosine):
    (segments, tables, used, rows), expected = large_case(cosine)
    assert_same(search(segments, tables, 20, rows, used), expected)
    one = DistanceTables(tables.metric, tables.inner[:1], tables.norm, tables.square_norm[:1])
    assert_same(search(segments, one, 20, rows, used), expected[:1])


@pytest.mark.parametrize("queries", [1, 33])
def test_a_sample_that_promises_too_much_is_not_believed(level, queries):
    """Good rows lie only in the groups that the first guess looks at, and there are fewer than k of them."""
    n, k = 70_016, 100
    rng = np.random.default_rng(0)
    codes = rng.integers(1, 256, (n, 3), dtype=np.uint8)
    total = n // 64
    sampled = [min(total - 1, (i * total + (i * 2654435761) % total) // 16) for i in range(16)]
    for group in sampled:
        codes[group * 64 : group * 64 + 4] = 0  # 64 good rows in all
    inner = rng.uniform(1, 2, (queries, 2, 256)).astype(np.float32)
    inner[:, :, 0] = -5
    tables = DistanceTables("euclidean", inner, np.ones(256, np.float32), np.zeros(queries))
    segments = [Segment(grouped(codes, rng), n)]
    assert_same(search(segments, tables, k, n), reference_search(segments, tables, k))


def test_plain_search_equals_the_reference(level):
    segments, tables, _, rows = make_case("gauss", 9000, 5, 3, True, 1, np.random.default_rng(1))
    parts = [(s.codes, s.rows, s.mask) for s in segments]
    positions, keys, _ = _native.search(parts, tables.planes(), None, True, 10, rows, 1, level, plain=True)
    assert_same(list(zip(positions, keys, strict=True)), reference_search(segments, tables, 10))


@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 8, 16])
@pytest.mark.parametrize(
    "effort",
    [
        Effort(sweeps=0),
        Effort(),
        Effort(sweeps=2, rounds=5),
        Effort(sweeps=0, rounds=5),
        Effort(beam=7, sweeps=0),
        Effort(3, 1, 2),
        Effort(20, 1),
        Effort(70, 0),
    ],
)
def test_encoder_equals_the_reference(m, effort, level, threads):
    rng = np.random.default_rng(m)
    quantizer = AdditiveQuantizer(rng.standard_normal((m, 256, 6)).astype(np.float32))
    z = rng.standard_normal((70, 6)).astype(np.float32) * np.float32(np.sqrt(m))
    start = rng.integers(0, 256, (70, m), dtype=np.uint8)
    found = quantizer.encode(z, effort), quantizer.encode(z, effort, start=start)
    simd.set_level("numpy")
    assert (found[0] == quantizer.encode(z, effort)).all()
    assert (found[1] == quantizer.encode(z, effort, start=start)).all()


def test_ties_of_the_encoder_go_to_the_first_code(level):
    books = np.zeros((3, 256, 2), dtype=np.float32)
    for effort in (Effort(), Effort(beam=5), Effort(beam=40), Effort(beam=70), Effort(rounds=3)):
        assert (AdditiveQuantizer(books).encode(np.ones((70, 2), np.float32), effort) == 0).all()


def test_vectors_that_are_not_numbers_get_some_codes(level):
    books = np.random.default_rng(0).standard_normal((3, 256, 2)).astype(np.float32)
    for effort in (Effort(), Effort(beam=5), Effort(beam=70, rounds=2)):
        codes = AdditiveQuantizer(books).encode(np.full((3, 2), np.nan, np.float32), effort)
        assert codes.shape == (3, 3)


def test_more_effort_never_gives_worse_codes(level):
    rng = np.random.default_rng(0)
    quantizer = AdditiveQuantizer(rng.standard_normal((4, 256, 8)).astype(np.float32))
    z = 2 * rng.standard_normal((400, 8)).astype(np.float32)

    def errors(effort):
        return np.square(z - quantizer.decode(quantizer.encode(z, effort))).sum(axis=1)

    assert (errors(Effort()) <= errors(Effort(sweeps=0)) + 1e-4).all()
    assert (errors(Effort(rounds=8)) <= errors(Effort()) + 1e-4).all()
    assert errors(Effort(rounds=8)).mean() < 0.9 * errors(Effort()).mean()
    assert errors(Effort(beam=16)).mean() < 0.9 * errors(Effort()).mean()


def test_levels_are_visible_and_checked():
    assert simd.get_level() in simd.levels()
    assert simd.levels()[-2:] == ("portable", "numpy")
    with pytest.raises(InvalidInputError, match="got 'mmx'"):
        simd.set_level("mmx")
    for bad in (0, -1, True, 2.0, 5000):
        with pytest.raises(InvalidInputError, match="threads"):
            simd.set_threads(bad)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"CCQ_SIMD_LEVEL": "portable", "CCQ_THREADS": "3"}, "portable 3"),
        ({"CCQ_SIMD_LEVEL": "sse9"}, "SIMD level: expected one of"),
        ({"CCQ_THREADS": "many"}, "threads: expected a whole number"),
    ],
)
def test_environment_variables(variables, words):
    script = "from ccq_core import simd; print(simd.get_level(), simd.get_threads())"
    result = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert words in result.stdout + result.stderr


def test_arguments_of_the_wrong_shape_are_refused():
    codes, tables = np.zeros((2, 3, 64), np.uint8), np.zeros((1, 3, 256), np.float32)
    for segments, t in (
        ([(codes, 129, None)], tables),
        ([(codes, 128, np.zeros(1, np.uint64))], tables),
        ([(codes[:, :2], 10, None)], tables),
        ([(codes, 10, None)], np.zeros((1, 18, 256), np.float32)),
        ([(codes, 10, None)], np.zeros((1, 3, 255), np.float32)),
        ([(codes, 10)], tables),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            _native.search(segments, t, None, False, 5, 10, 1, "portable")
    with pytest.raises(ValueError, match="no level"):
        _native.search([(codes, 10, None)], tables, None, False, 5, 10, 1, "mmx")
