"""CodeTable against plain Python, at sizes around block edges, with views taken along the way."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccq_core.table
from ccq_core.distances import DistanceTables
from ccq_core.errors import InvalidInputError
from ccq_core.table import CodeTable

WIDTH = 3


def make_tables(seed, metric="euclidean", queries=2):
    rng = np.random.default_rng(seed)
    # Few distinct entries make many ties.
    planes = rng.integers(0, 3, (queries, WIDTH, 256)).astype(np.float32)
    planes[:, -1] = rng.integers(1, 3, 256)
    return DistanceTables(metric, planes, np.zeros(queries))


def expected(rows, tables, query, k):
    """rows: label -> code row."""

    def key(code):
        total = sum(float(tables.planes[query][m][code[m]]) for m in range(WIDTH - 1))
        norm = float(tables.planes[query][-1][code[-1]])
        return total * norm if tables.metric == "cosine" else total + norm

    return sorted((key(code), label) for label, code in rows.items())[:k]


def check(view, rows, tables, k, allowed=None):
    if allowed is not None:
        rows = {label: code for label, code in rows.items() if label in set(allowed)}
        allowed = np.array(sorted(set(allowed)), dtype=np.int64)
        present, codes = view.take(allowed)
        assert present.tolist() == [label in rows for label in allowed.tolist()]
        assert codes.tolist() == [list(rows.get(label, [0] * WIDTH)) for label in allowed.tolist()]
    for query, (labels, keys) in enumerate(view.search(tables, k, allowed)):
        assert list(zip(keys.tolist(), labels.tolist(), strict=True)) == expected(rows, tables, query, k)


operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 40), st.integers(1, 3)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 150), max_size=30), st.just(0)),
        st.tuples(st.just("view"), st.just(0), st.just(0)),
    ),
    max_size=12,
)


@given(operations, st.integers(0, 1000), st.sampled_from(["cosine", "euclidean"]), st.integers(1, 60))
@settings(deadline=None, max_examples=150)
def test_any_history_searches_like_plain_python(history, seed, metric, k):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ccq_core.table, "BLOCK_ROWS", 16)
        patch.setattr(ccq_core.table, "FIRST_BLOCK_ROWS", 4)
        patch.setattr(ccq_core.table, "SLAB_ROWS", 200)
        rng = np.random.default_rng(seed)
        table, rows, views, next_label = CodeTable(WIDTH), {}, [], 0
        for kind, argument, gap in history:
            if kind == "append":
                labels = next_label + gap * np.arange(argument, dtype=np.int64)
                codes = rng.integers(0, 256, (argument, WIDTH), dtype=np.uint8)
                table.append(labels, codes)
                rows.update(zip(labels.tolist(), codes.tolist(), strict=True))
                next_label = int(labels[-1]) + 1 if argument else next_label
            elif kind == "delete":
                gone = table.delete(np.array(sorted(set(argument)), dtype=np.int64))
                assert gone == sum(label in rows for label in set(argument))
                for label in argument:
                    rows.pop(label, None)
            else:
                views.append((table.view(), dict(rows)))
        views.append((table.view(), dict(rows)))
        assert len(table) == len(rows)
        tables = make_tables(seed, metric)
        for view, then in views:  # older views still show what they were taken of
            assert view.rows == len(then)
            check(view, then, tables, k)
            check(view, then, tables, k, allowed=rng.integers(0, 150, 20).tolist())
            labels, codes = view.arrays()
            assert dict(zip(labels.tolist(), codes.tolist(), strict=True)) == then
            for label in (0, 7, 149):
                found = view.get(label)
                assert (None if found is None else found.tolist()) == then.get(label)


def test_empty_table():
    view = CodeTable(WIDTH).view()
    assert [len(labels) for labels, _ in view.search(make_tables(0), 5)] == [0, 0]
    assert view.arrays()[1].shape == (0, WIDTH)
    assert view.get(3) is None


def test_refused_rows_change_nothing():
    table = CodeTable(WIDTH)
    table.append(np.array([5, 6]), np.zeros((2, WIDTH), np.uint8))
    for labels, codes in (
        ([6], np.zeros((1, WIDTH), np.uint8)),
        ([9, 8], np.zeros((2, WIDTH), np.uint8)),
        ([7], np.zeros((1, WIDTH + 1), np.uint8)),
        ([7], np.zeros((1, WIDTH), np.int64)),
        ([7, 8], np.zeros((1, WIDTH), np.uint8)),
    ):
        with pytest.raises(InvalidInputError):
            table.append(np.array(labels), codes)
    assert len(table) == 2


def test_deleted_rows_give_their_memory_back(monkeypatch):
    monkeypatch.setattr(ccq_core.table, "BLOCK_ROWS", 1024)
    table = CodeTable(WIDTH)
    table.append(np.arange(20_000), np.zeros((20_000, WIDTH), np.uint8))
    full = table.nbytes
    for lo in range(0, 19_000, 500):
        table.delete(np.arange(lo, lo + 500))
    assert len(table) == 1000
    assert table.nbytes < full / 4
    assert table.view().arrays()[0].tolist() == list(range(19_000, 20_000))


def test_a_small_table_is_small():
    table = CodeTable(5)
    table.append(np.arange(3), np.zeros((3, 5), np.uint8))
    assert table.nbytes < 10_000


def test_views_hold_while_a_writer_works():
    """Searches in other threads only ever see whole batches."""
    table, stop, failures = CodeTable(WIDTH), threading.Event(), []
    lock = threading.Lock()
    current = [table.view()]

    def reader():
        tables = make_tables(0, queries=1)
        while not stop.is_set():
            view = current[0]
            ((labels, _),) = view.search(tables, 100_000)
            if len(labels) % 10 or len(labels) != view.rows:
                failures.append(len(labels))

    threads = [threading.Thread(target=reader) for _ in range(2)]
    for thread in threads:
        thread.start()
    rng = np.random.default_rng(0)
    for batch in range(300):
        labels = np.arange(batch * 10, batch * 10 + 10)
        with lock:
            table.append(labels, rng.integers(0, 256, (10, WIDTH), dtype=np.uint8))
            if batch % 3 == 0:
                table.delete(labels)
            current[0] = table.view()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(table) == 2000


def test_counts_and_samples_are_of_live_rows(monkeypatch):
    monkeypatch.setattr(ccq_core.table, "BLOCK_ROWS", 128)
    rng = np.random.default_rng(5)
    made, labels = CodeTable(3), np.cumsum(rng.integers(1, 4, 500))
    codes = rng.integers(0, 256, (500, 3), dtype=np.uint8)
    made.append(labels, codes)
    alive = rng.random(500) < 0.7
    made.delete(labels[~alive])
    view = made.view()
    assert len(view.blocks) > 2
    counts = sum(view.counts())
    assert [np.bincount(codes[alive, place], minlength=256).tolist() for place in range(3)] == counts.tolist()
    for most in (1, 2, 100, view.rows, 10_000):
        found, rows = view.sample(most)
        assert len(found) == min(most, view.rows)
        at = np.searchsorted(labels, found)
        assert (labels[at] == found).all()
        assert alive[at].all()
        assert (rows == codes[at]).all()
        assert (np.diff(found) > 0).all()
