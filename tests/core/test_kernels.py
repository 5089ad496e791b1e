"""Every kernel at every level that this CPU has, against the NumPy reference: equal to the last bit, ties included."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from ccq_core import _native, simd
from ccq_core.distances import DistanceTables, TableMaker
from ccq_core.errors import InvalidInputError
from ccq_core.memory import aligned_empty
from ccq_core.quantizer import AdditiveQuantizer, Effort
from ccq_core.scan import Rows, Segment, reference_search, search

KINDS = (
    "gauss",
    "whole",
    "sorted",
    "outlier",
    "constant",
    "tiny",
    "far",
    "few codes",
    "odd norms",
    "zero",
    "huge",
)
SIZES = (1, 2, 9, 15, 17, 63, 64, 65, 127, 128, 129, 1000, 4095, 4097, 20_000)


@pytest.fixture(params=simd.levels()[:-1])
def level(request):
    before = simd.get_level()
    simd.set_level(request.param)
    yield request.param
    simd.set_level(before)


@pytest.fixture(params=[1, 3])
def threads(request):
    before = simd.get_threads()
    simd.set_threads(request.param)
    yield request.param
    simd.set_threads(before)


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
        offsets = np.cumsum(rng.integers(1, 9, hi - lo), dtype=np.uint32) if rng.integers(2) else None
        segments.append(Segment(blocks, hi - lo, mask, 10 * lo, offsets))
    metric = "cosine" if cosine else "euclidean"
    planes_of = np.concatenate([inner, np.broadcast_to(norm, (queries, 1, 256))], axis=1, dtype=np.float32)
    tables = DistanceTables(metric, planes_of, np.zeros(queries))
    return Rows(segments, int(selected.sum()) if live < 1 else n, planes, used), tables


def assert_same(found, expected):
    for (labels, keys), (right_labels, right_keys) in zip(found, expected, strict=True):
        assert labels.tolist() == right_labels.tolist()
        assert np.array_equal(keys, right_keys)


@pytest.mark.parametrize("kind", KINDS)
def test_scan_equals_the_reference(kind, level):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(6):
        n, planes = int(rng.choice(SIZES)), int(rng.choice([2, 3, 5, 6, 7, 9, 17]))
        queries, k = int(rng.choice([1, 2, 5, 24, 33, 65])), int(rng.choice([1, 10, 50, 1000, 10_000]))
        rows, tables = make_case(
            kind, n, planes, queries, bool(rng.integers(2)), float(rng.choice([1, 0.8, 0.01, 0])), rng
        )
        expected = reference_search(rows, tables, k)
        assert_same(search(rows, tables, k), expected)
        assert_same(search(replace(rows, used=None), tables, k), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_of_some_labels_equals_the_reference(kind, level):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(6):
        n, planes = int(rng.choice(SIZES)), int(rng.choice([2, 5, 9]))
        queries, k = int(rng.choice([1, 3, 40])), int(rng.choice([1, 10, 1000]))
        rows, tables = make_case(kind, n, planes, queries, bool(rng.integers(2)), float(rng.choice([1, 0.8, 0])), rng)
        for count in (0, 1, 30, 3 * n):  # labels of rows, of deleted ones, of none; all is more than there is
            only = np.unique(rng.integers(-50, 10 * n + 100, count))
            assert_same(search(rows, tables, k, only), reference_search(rows, tables, k, only))
        everything = np.arange(-5, 10 * n + 100)
        assert_same(search(rows, tables, k, everything), reference_search(rows, tables, k))


@cache
def large_case(cosine):
    rows, tables = make_case("whole", 600_000, 3, 4, cosine, 0.9, np.random.default_rng(5))
    return rows, tables, reference_search(rows, tables, 20)


@pytest.mark.parametrize("cosine", [False, True])
def test_threads_do_not_show(level, threads, cosine):
    rows, tables, expected = large_case(cosine)
    assert_same(search(rows, tables, 20), expected)
    one = DistanceTables(tables.metric, tables.planes[:1], tables.square_norm[:1])
    assert_same(search(rows, one, 20), expected[:1])


def test_searches_at_the_same_time_share_threads(level, threads):
    rows, tables, expected = large_case(False)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: search(rows, tables, 20), range(40)):
            assert_same(found, expected)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_a_search_behind_a_fork():
    """The child has none of its parent's threads, and makes its own."""
    script = (
        "import os, numpy as np; from ccq_core import simd; from tests.core.test_kernels import large_case, search\n"
        "simd.set_threads(3); rows, tables, expected = large_case(False); search(rows, tables, 20)\n"
        "if child := os.fork(): raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "before = len(os.listdir('/proc/self/task')); (labels, _), *_ = search(rows, tables, 20)\n"
        "more = len(os.listdir('/proc/self/task')) - before; same = np.array_equal(labels, expected[0][0])\n"
        "os._exit(7 if same and more else 1)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 7


@pytest.mark.parametrize("queries", [1, 33])
@pytest.mark.parametrize(("n", "sampled"), [(64_000, 16), (70_016, 34)])
def test_a_sample_that_promises_too_much_is_not_believed(level, queries, n, sampled):
    """Good rows lie only in the groups that the guess looks at, and there are fewer than k of them."""
    rng = np.random.default_rng(0)
    codes = rng.integers(1, 256, (n, 3), dtype=np.uint8)
    total = n // 64
    for i in range(sampled):
        group = min(total - 1, (i * total + (i * 2654435761) % total) // sampled)
        codes[group * 64 : group * 64 + 2] = 0  # 68 good rows in all at most
    inner = rng.uniform(1, 2, (queries, 3, 256)).astype(np.float32)
    inner[:, :2, 0] = -5
    tables = DistanceTables("euclidean", inner, np.zeros(queries))
    rows = Rows([Segment(grouped(codes, rng), n)], n, 3)
    assert_same(search(rows, tables, 100), reference_search(rows, tables, 100))


@pytest.mark.parametrize("cosine", [False, True])
def test_entries_whose_differences_float_cannot_hold(level, cosine):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        planes = (3, 5, 9)[seed % 3]
        inner = rng.standard_normal((1, planes, 256)) * 10 ** rng.uniform(37.5, 38.4)
        inner[:, -1] = np.abs(rng.standard_normal(256)) + 0.1 if cosine else np.abs(inner[:, -1])
        metric = "cosine" if cosine else "euclidean"
        tables = DistanceTables(metric, inner.clip(-3.3e38, 3.3e38).astype(np.float32), np.zeros(1))
        rows = Rows([Segment(rng.integers(0, 256, (313, planes, 64), dtype=np.uint8), 20_032)], 20_032, planes)
        assert_same(search(rows, tables, 1000), reference_search(rows, tables, 1000))


def test_rows_take_part_where_no_sample_looks(level):
    """As of a filter: one run of neighbours, between the groups of the large sample, on one of the small sample."""
    total, planes = 4096, 5
    rng = np.random.default_rng(0)
    large, small = ([(i * total + (i * 2654435761) % total) // n for i in range(n)] for n in (16, 4))
    inside = next(group for group in small if group not in large)
    mask = np.zeros(total, np.uint64)
    mask[max(g for g in large if g < inside) + 1 : min(g for g in large if g > inside)] = np.iinfo(np.uint64).max
    codes = rng.integers(0, 256, (total, planes, 64), dtype=np.uint8)
    tables = DistanceTables("euclidean", rng.standard_normal((1, planes, 256)).astype(np.float32), np.zeros(1))
    live = 64 * int((mask > 0).sum())
    assert live > 64 * 64
    rows = Rows([Segment(codes, 64 * total, mask)], live, planes)
    assert_same(search(rows, tables, 10), reference_search(rows, tables, 10))


def without_norms(rows: Rows, tables: DistanceTables, rng: np.random.Generator) -> DistanceTables:
    """The same with the last plane a codebook like the others, whose neighbours are not alike."""
    planes = tables.planes.copy()
    planes[:, -1] = rng.permuted(planes[:, 0], axis=1)
    return DistanceTables("cosine", planes, tables.square_norm, norms=False)


@pytest.mark.parametrize("kind", KINDS)
def test_scan_without_norms_equals_the_reference(kind, level, threads):
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for planes in (2, 4, 5, 8, 16):
        n, queries = int(rng.choice(SIZES)), int(rng.choice([1, 3, 20, 50]))
        rows, tables = make_case(kind, n, planes, queries, False, float(rng.choice([1.0, 0.5])), rng)
        tables = without_norms(rows, tables, rng)
        k = int(rng.choice([1, 10, 200]))
        assert_same(search(rows, tables, k), reference_search(rows, tables, k))


def test_plain_search_equals_the_reference(level):
    rows, tables = make_case("gauss", 9000, 5, 3, True, 1, np.random.default_rng(1))
    labels, keys, _ = _native.search(rows.native, tables.planes, True, 10, 1, level, plain=True)
    assert_same(list(zip(labels, keys, strict=True)), reference_search(rows, tables, 10))


@cache
def encoder_case(m):
    rng = np.random.default_rng(m)
    quantizer = AdditiveQuantizer(rng.standard_normal((m, 256, 6)).astype(np.float32))
    z = rng.standard_normal((70, 6)).astype(np.float32) * np.float32(np.sqrt(m))
    return quantizer, z, rng.integers(0, 256, (70, m), dtype=np.uint8)


@pytest.mark.parametrize("planes", [2, 3, 4, 5, 6, 7, 8, 9, 17])
@pytest.mark.parametrize(("alike", "norms"), [(True, True), (False, True), (True, False)])
def test_byte_tables_pass_what_they_should_and_little_else(level, planes, alike, norms):
    rng = np.random.default_rng(planes)
    codes = rng.integers(0, 256, (200, planes, 64), dtype=np.uint8)
    tables = rng.integers(0, 600 // planes, (planes, 256)).clip(max=255).astype(np.uint8)
    tables[:-1, 10::20] = rng.integers(128, 256, tables[:-1, 10::20].shape)
    if norms:
        tables[-1].sort()
    if alike:
        books = tables[: planes - norms]
        books[:, 128:] = books[:, :128]
    sums, cut = np.zeros((2, 200, 64), dtype=int)
    for plane in range(planes - 1):
        sums += tables[plane][codes[:, plane]]
        cut += tables[plane].clip(max=127 if planes > 4 else 255)[codes[:, plane]]  # as kernels may that add in pairs
    for limit in (0, 100, 254):
        exact = np.flatnonzero(np.minimum(sums + tables[-1][codes[:, -1]], 255) <= limit)
        least = np.flatnonzero(
            np.minimum(cut + tables[-1][codes[:, -1] // 8 * 8 if norms else codes[:, -1]], 255) <= limit
        )
        found = _native.filter_rows(codes, tables, limit, level, norms=norms)
        assert set(exact) <= set(found.tolist()) <= set(least)
        assert limit < 254 or len(exact) > 1000
        assert (np.diff(found.astype(int)) > 0).all()


@pytest.mark.parametrize("planes", [2, 5, 9, 11, 12, 13, 16, 17])
def test_byte_tables_of_batches_pass_exactly_what_they_should(level, planes):
    rng = np.random.default_rng(planes)
    codes = rng.integers(0, 256, (50, planes, 64), dtype=np.uint8)
    parts = 1 if planes < 12 else 4
    tables = rng.integers(0, parts * 500 // planes, (10, planes, 256)).clip(max=255).astype(np.uint8)
    limits = np.array([0, 60, 100, 112, 120, 127, 150, 180, 200, 254], np.uint8)
    entries = np.stack([tables[:, plane, codes[:, plane]] for plane in range(planes)]).astype(int)
    cuts = [planes * part // parts for part in range(parts + 1)]
    sums = [entries[lo:hi].sum(axis=0).clip(max=255) for lo, hi in pairwise(cuts)]
    while len(sums) > 1:
        sums = [(a + b) // 2 for a, b in zip(sums[::2], sums[1::2], strict=True)]
    queries, groups, places = np.nonzero(sums[0] <= limits[:, None, None])
    expected = sorted(zip((64 * groups + places).tolist(), queries.tolist(), strict=True))
    assert len(expected) > 1000
    for hits in _native.filter_hits(codes, tables, limits, level):
        assert list(map(tuple, hits.tolist())) == expected


HARDLY_BETTER = {  # entries of rows, and of better ones that lose less by flooring
    2: ([1], [0.9999]),
    5: ([0.4977, 0.5023], [0.9999, 0]),
    9: ([0.4977, 0.5023], [0.9999, 0]),
    16: ([0.2517, 0.2495, 0.2495, 0.2493], [0.2498, 0.2498, 0.2498, 0.2498]),
    17: ([0.2517, 0.2495, 0.2495, 0.2493], [0.2520, 0.2498, 0.2498, 0.2476]),
}


@pytest.mark.parametrize("queries", [1, 33, 65])
@pytest.mark.parametrize("planes", HARDLY_BETTER)
def test_rows_that_are_hardly_better_than_those_before(level, planes, queries):
    """They are at the very limit of what byte tables pass, and few, so that no sample has one of them."""
    rng = np.random.default_rng(planes)
    n, few = 200_000, 20
    inner = np.zeros((queries, planes, 256), np.float32)
    inner[:, :, 3:] = 5
    for i, (good, better) in enumerate(zip(*HARDLY_BETTER[planes], strict=True)):
        inner[:, planes * i // len(HARDLY_BETTER[planes][0]), 1:3] = good, better
    codes = np.repeat(rng.choice([1, 3], (n, 1), p=[0.02, 0.98]).astype(np.uint8), planes, axis=1)
    behind = n // 2 + rng.choice(n // 2, few, replace=False)
    codes[behind] = 2
    rows = Rows([Segment(grouped(codes, rng), n)], n, planes)
    for labels, _ in search(rows, DistanceTables("euclidean", inner, np.zeros(queries)), few):
        assert labels.tolist() == sorted(behind.tolist())


@cache  # the reference is slow, and one for all levels and numbers of threads
def reference_codes(m, effort):
    quantizer, z, start = encoder_case(m)
    before = simd.get_level()
    simd.set_level("numpy")
    codes = quantizer.encode(z, effort), quantizer.encode(z, effort, start=start)
    simd.set_level(before)
    return codes


EFFORTS = (
    Effort(sweeps=0),
    Effort(),
    Effort(sweeps=2, rounds=5),
    Effort(sweeps=0, rounds=5),
    Effort(beam=7, sweeps=0),
    Effort(3, 1, 2),
    Effort(20, 1),
    Effort(70, 0),
)


def encodings():
    """Numbers of codebooks and efforts. The reference takes long for large products of them, most of all emulated."""
    for m in (1, 2, 3, 4, 7, 8, 16):
        for effort in EFFORTS:
            marks = [pytest.mark.long_when_emulated] if m * effort.beam > 140 else []
            name = f"{m}-{effort.sweeps}-{effort.rounds}-{effort.beam}"
            yield pytest.param(m, effort, marks=marks, id=name)


@pytest.mark.parametrize(("m", "effort"), list(encodings()))
def test_encoder_equals_the_reference(m, effort, level, threads):
    quantizer, z, start = encoder_case(m)
    expected = reference_codes(m, effort)
    assert (quantizer.encode(z, effort) == expected[0]).all()
    assert (quantizer.encode(z, effort, start=start) == expected[1]).all()


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


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("m", "dim"), [(1, 1), (3, 7), (4, 64), (16, 33)])
def test_tables_equal_the_reference(m, dim, metric, level):
    rng = np.random.default_rng(m)
    make = TableMaker(rng.standard_normal((m, 256, dim)).astype(np.float32), np.linspace(0, 3, 256, dtype=np.float32))
    z = rng.standard_normal((5, dim)).astype(np.float32)
    z[3] = 0
    for latents in (z, z[:0], z[::-1], np.asfortranarray(z), z * np.float32(1e30)):
        found, expected = make(latents, metric), make.reference(latents, metric)
        assert np.array_equal(found.planes, expected.planes, equal_nan=True)
        assert found.square_norm.tobytes() == expected.square_norm.tobytes()


def test_arguments_of_the_wrong_shape_are_refused():
    codes, tables = np.zeros((2, 3, 64), np.uint8), np.zeros((1, 3, 256), np.float32)
    for segment, planes, used in (
        ((codes, 129, None, 0, None), 3, None),
        ((codes, 128, np.zeros(1, np.uint64), 0, None), 3, None),
        ((codes, 128, None, 0, np.zeros(127, np.uint32)), 3, None),
        ((codes[:, :2], 10, None, 0, None), 3, None),
        ((codes, 10, None, 0, None), 18, None),
        ((codes, 10, None, 0, None), 3, np.zeros((2, 256), np.uint8)),
        ((codes, 10, None), 3, None),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            _native.Rows([segment], planes, 10, used)
    rows = _native.Rows([(codes, 10, None, 0, None)], 3, 10, None)
    for bad in (np.zeros((1, 4, 256), np.float32), np.zeros((1, 3, 255), np.float32)):
        with pytest.raises(ValueError, match="tables"):
            _native.search(rows, bad, False, 5, 1, "portable")
    with pytest.raises(ValueError, match="no level"):
        _native.search(rows, tables, False, 5, 1, "mmx")
    norms, blocks = np.zeros(256, np.float32), aligned_empty((8, 3, 64), np.float32)
    for b, n, z in (
        (blocks[:7], norms, 3),
        (blocks[:, :, :32].copy(), norms, 3),
        (blocks, norms[1:], 3),
        (blocks, norms, 4),
    ):
        with pytest.raises(ValueError, match="expected"):
            _native.distance_tables(b, n, np.zeros((1, z), np.float32), True, "portable")
    with pytest.raises(ValueError, match="planes"):
        _native.filter_rows(np.zeros((1, 18, 64), np.uint8), np.zeros((18, 256), np.uint8), 1, "portable")
    with pytest.raises(ValueError, match="tables"):
        _native.filter_rows(codes, np.zeros((2, 256), np.uint8), 1, "portable")


def test_rows_keep_their_arrays_alive():
    codes = np.full((1, 2, 64), 7, np.uint8)
    rows = _native.Rows([(codes, 64, None, 100, None)], 2, 64, None)
    del codes
    gc.collect()
    labels, keys, _ = _native.search(rows, np.ones((1, 2, 256), np.float32), False, 2, 1, "portable")
    assert (labels.tolist(), keys.tolist()) == ([[100, 101]], [[2.0, 2.0]])
