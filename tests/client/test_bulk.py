"""Indexing any number of rows: how they are cut into requests, and what is said where one of these fails."""

import base64
import io
import itertools
import json
import pickle
import sys
import threading
import time

import httpx
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccq_client import ApiError, IndexingError, InputError, Progress, Retries, TransportError, errors
from ccq_client.bulk import Bulk, Rows
from ccq_client.limits import Limits
from ccq_client.progress import reporter
from ccq_client.results import make
from ccq_core import CCQ
from tests.client.kinds import DEFAULT_LIMITS, StoppedClock, Watched, app_transport, connected
from tests.service.harness import MODEL_FILE, PAIRS
from tests.service.test_access import create_key

LIMITS = {name: getattr(DEFAULT_LIMITS, name) for name in Limits.__slots__}


def limits(**other):
    return make(Limits, {**LIMITS, **other})


def cut(rows, batch_items=1000, batch_bytes=1 << 23, **other):
    bulk = Bulk(rows, limits(**other), batch_items, batch_bytes, reporter(False))
    return list(bulk.batches())


@given(
    st.lists(st.integers(0, 300), max_size=40),
    st.integers(1, 12),
    st.integers(1, 2000),
    st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_every_row_is_in_one_request_and_no_request_is_too_long(lengths, items, size, absent):
    n = len(lengths)
    x = np.arange(n * 3, dtype=np.float64).reshape(n, 3)
    x[np.array(absent[:n], dtype=bool)] = np.nan
    rows = Rows(range(n), {"a": x}, [{"text": "é{[" * length} for length in lengths])
    batches = cut(rows, items, size, max_brackets=400)
    assert [row for batch in batches for row in batch.rows] == [i for i in range(n) if not absent[i]]
    assert rows.left_out == sum(absent[:n])
    for batch in batches:
        assert 1 <= len(batch.rows) <= items
        alone = len(batch.rows) == 1
        assert len(batch.body) <= size or alone
        assert batch.body.count(b"{") + batch.body.count(b"[") <= 400 or alone
        sent = json.loads(batch.body)["items"]
        for row, item in zip(batch.rows, sent, strict=True):
            vector = np.frombuffer(base64.b64decode(item["features"]["a"]), dtype="<f4")
            assert vector.tolist() == x[row].tolist()
            assert (item["id"], item["payload"]) == (str(row), {"text": "é{[" * lengths[row]})


def test_requests_are_as_full_as_they_may_be():
    rows = Rows(range(10), {"a": np.ones((10, 3))})
    (whole,) = cut(rows)
    each = (len(whole.body) - len(b'{"items":[]}') - 9) // 10
    for fits in (1, 3, 10):
        room = len(b'{"items":[]}') + fits * each + fits - 1
        assert [len(batch.rows) for batch in cut(rows, batch_bytes=room)][:-1] == [fits] * (-(-10 // fits) - 1)
        assert len(cut(rows, batch_bytes=room)[0].body) == room
        assert len(cut(rows, batch_bytes=room - 1)[0].rows) == max(1, fits - 1)
    assert [len(batch.rows) for batch in cut(rows, max_batch_items=4)] == [4, 4, 2]
    assert cut(Rows([], {"a": np.ones((0, 3))})) == []


def test_an_item_that_no_request_can_hold_is_named():
    rows = Rows(["a", "b"], {"a": np.ones((2, 3))}, [{}, {"x": "y" * 99}])
    with pytest.raises(InputError, match=r"row 1: its item takes \d+ bytes as JSON, and the service takes 120"):
        cut(rows, max_body_bytes=120)


def spoiled(value):
    """Three rows, of which the second has this as its sixth number."""
    x = np.ones((3, 12))
    x[1, 5] = value
    return x


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"ids": "abc"}, "ids: expected a list of ids, got 'abc'"),
        ({"ids": ["a", "b"]}, "ids: expected 3, one for each row of features, got 2"),
        ({"ids": ["a", 1, "1"]}, r"ids\[1\] and ids\[2\] are both '1'"),
        ({"ids": ["a", "", "c"]}, r"ids\[1\]: expected 1 to 512 bytes of UTF-8, got 0"),
        ({"ids": ["a", "é" * 257, "c"]}, "got 514"),
        ({"ids": ["a", True, "c"]}, r"ids\[1\]: expected an id, a string or an integer, got True"),
        ({"ids": ["a", 1.5, "c"]}, "got 1.5"),
        ({"ids": ["a", "\udcff", "c"]}, "valid Unicode"),
        ({"payloads": [{}]}, "payloads: expected 3"),
        ({"payloads": {"a": 1, "b": 2, "c": 3}}, "payloads: expected a list, one for each of 3 rows, got dict"),
        ({"if_versions": [0, 0, 0, 0]}, "if_versions: expected 3"),
        ({"payloads": [{}, {"a": {1, 2}}, {}]}, "row 1 cannot be written as JSON"),
        ({"features": {}}, "expected arrays by modality"),
        ({"features": np.ones((3, 12))}, "expected arrays by modality"),
        (
            {"features": {"image": np.ones(3)}},
            r"features\['image'\]: expected an array of shape \(n, P\), got shape \(3,\): \(1, P\) for one object",
        ),
        ({"features": {"image": np.ones((3, 12)), "text": np.ones((2, 8))}}, "expected as many rows of each modality"),
        ({"features": {"image": np.ones((3, 13))}}, "expected vectors of 12 numbers, got 13"),
        ({"features": {"sound": np.ones((3, 12))}}, "has the modalities image, text"),
        (
            {"features": {"image": spoiled(np.nan)}},
            r"features\['image'\]: row 1, number 5: .* got nan \(a row of NaN alone",
        ),
        ({"features": {"image": spoiled(np.inf)}}, "row 1, number 5: .* got inf"),
        ({"features": {"image": spoiled(-1e300)}}, "row 1, number 5: expected a finite number that float32 can hold"),
        (
            {"features": {"image": np.ones((3, 12), dtype=complex)}},
            "expected an array of numbers, got one of type complex",
        ),
        ({"features": {"image": np.ones((3, 12), dtype=bool)}}, "got one of type bool"),
        ({"features": {"image": [[1.0], [1.0, 2.0], [3.0]]}}, "expected an array of numbers: "),
        ({"features": {"image": [["a"] * 12] * 3}}, "got one of type <U1"),
        ({"features": {"image": np.ones((3, 12, 1))}}, r"got shape \(3, 12, 1\)"),
        ({"concurrency": 0}, "concurrency: expected 1 or more, got 0"),
        ({"batch_items": 0}, "expected batches of 1 or more"),
    ],
)
def test_what_cannot_be_sent_is_said_before_anything_is(shared, wrong, words):
    arguments = {"ids": ["a", "b", "c"], "features": {"image": np.ones((3, 12))}, **wrong}
    with pytest.raises(InputError, match=words):
        shared.index(**arguments)
    assert list(shared.items()) == []


def test_lengths_of_a_collection_that_was_made_anew_are_asked_for_anew(client):
    client.index([1], {"text": PAIRS["text"][:1]})
    other = CCQ(bits=8, iterations=1).fit({"sound": PAIRS["image"][:, :9]})
    client.models.upload("other", other)
    client.collections.delete("default")
    client.collections.create("default", "other")
    assert client.index([1], {"sound": PAIRS["image"][:1, :9]}).indexed == 1
    with pytest.raises(InputError, match="has the modalities sound"):
        client.index([1], {"text": PAIRS["text"][:1]})


def test_any_type_of_number_gives_the_same_item(client):
    x = np.round(PAIRS["text"][:1] * 4) / 4
    for i, dtype in enumerate(("float16", "float32", "float64", ">f4", ">f8", "longdouble")):
        client.index([i], {"text": x.astype(dtype)})
    client.index([6], {"text": np.asfortranarray(np.repeat(x, 2, axis=0))[::2]})
    client.index([7], {"text": x.tolist()})
    client.index([8], {"text": [memoryview(x[0].copy())]})
    found = client.search({"text": x[0].tolist()}, database="text", limit=20)
    assert found.ids == [str(i) for i in range(9)]
    assert len(set(found.distances.tolist())) == 1


def test_summary_and_progress(client, capsys):
    seen = []
    features = {"text": PAIRS["text"][:100].copy()}
    features["text"][[4, 50]] = np.nan
    done = client.index(np.arange(100), features, batch_items=40, progress=seen.append)
    assert (done.indexed, done.left_out, done.requests) == (98, 2, 3)
    assert done.seconds > 0
    assert seen == [Progress(40, 98), Progress(80, 98), Progress(98, 98)]
    assert client.index([], {"text": np.ones((0, 8))}).indexed == 0
    assert capsys.readouterr() == ("", "")
    client.index(range(10), {"text": PAIRS["text"][:10]}, progress=True)
    assert "10 of 10 items\n" in capsys.readouterr().err


@pytest.mark.parametrize("concurrency", [1, 3])
def test_all_is_stored_whatever_goes_at_one_time(client, concurrency):
    done = client.index(range(400), PAIRS, batch_items=7, concurrency=concurrency)
    assert (done.indexed, done.requests) == (400, 58)
    listed = [int(item.id) for item in client.items()]
    assert sorted(listed) == list(range(400))
    if concurrency == 1:
        assert listed == list(range(400))


def test_no_more_than_so_many_go_at_one_time():
    busy, most, lock = 0, 0, threading.Lock()

    def answer(request):
        nonlocal busy, most
        if request.url.path == "/limits":
            return httpx.Response(200, json=LIMITS)
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.002)
        with lock:
            busy -= 1
        return httpx.Response(200, json={"indexed": len(json.loads(request.content)["items"]), "took_ms": 1})

    with connected("threads", httpx.MockTransport(answer), check_version=False) as client:
        assert client.index(range(200), {"a": np.ones((200, 2))}, batch_items=5, concurrency=3).requests == 40
    assert 1 < most <= 3


@pytest.fixture
def failing(kind, tmp_path):
    """A client of a service, and what is raised instead of the answer to its n-th request to index."""
    answers = {}
    count = itertools.count(1)

    def after(request, response):
        if request.url.path.endswith("/index") and (n := next(count)) in answers:
            raise answers[n]

    transport = Watched(app_transport(kind, tmp_path / "data"), after)
    with connected(kind, transport, retries=0) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny")
        yield client, answers


def stored(client):
    return sorted(int(item.id) for item in client.items())


def test_a_failure_in_the_middle_says_what_is_stored(failing):
    client, _ = failing
    features = {"text": PAIRS["text"][:100].copy()}
    features["text"][[3, 95]] = np.nan
    payloads = [{}] * 100
    payloads[62] = {"big": "x" * 70_000}  # only the service knows its limit
    with pytest.raises(IndexingError) as caught:
        client.index(range(100), features, payloads, batch_items=20)
    error = caught.value
    assert error.stored == [*range(3), *range(4, 61)][:60]
    assert error.stored == stored(client)
    assert error.unsure == []
    assert error.missing == [i for i in range(61, 100) if i != 95]
    assert isinstance(error.__cause__, errors.RequestError)
    assert str(error).startswith("the request of rows 61 to 80 failed; 60 of 98 rows are stored (0 to 2, 4 to 60). ")
    payloads[62] = None
    rest = error.missing
    client.index(rest, {"text": features["text"][rest]}, [payloads[i] for i in rest])
    assert stored(client) == [i for i in range(100) if i not in (3, 95)]


def test_a_failure_of_the_first_request_is_that_error(failing):
    client, _ = failing
    with pytest.raises(errors.RequestError) as caught:
        client.index(range(5), {"text": PAIRS["text"][:5]}, [{"big": "x" * 70_000}] * 5, batch_items=2)
    assert caught.value.code == "invalid_request"
    assert stored(client) == []


def test_rows_whose_fate_is_unknown_are_named(failing):
    client, answers = failing
    answers[2] = httpx.ReadError("lost")
    with pytest.raises(IndexingError) as caught:
        client.index(range(9), {"text": PAIRS["text"][:9]}, batch_items=3)
    error = caught.value
    assert (error.stored, error.unsure, error.missing) == ([0, 1, 2], [3, 4, 5], [*range(3, 9)])
    assert "of rows 3 to 5 it is not known" in str(error)
    assert isinstance(error.__cause__, TransportError)
    assert set(error.stored) <= set(stored(client)) <= set(error.stored) | set(error.unsure)
    answers.clear()
    assert client.index(error.missing, {"text": PAIRS["text"][error.missing]}).indexed == 6
    assert stored(client) == list(range(9))


@pytest.mark.parametrize("concurrency", [2, 4])
def test_what_is_said_to_be_stored_is_whatever_goes_at_one_time(failing, concurrency):
    client, answers = failing
    answers[4] = httpx.ReadError("lost")
    with pytest.raises(IndexingError) as caught:
        client.index(range(60), {"text": PAIRS["text"][:60]}, batch_items=3, concurrency=concurrency)
    error = caught.value
    found = set(stored(client))
    assert set(error.stored) <= found <= set(error.stored) | set(error.unsure)
    assert len(error.unsure) == 3
    assert len(found) < 60  # no more were begun
    assert sorted({*error.stored, *error.missing}) == list(range(60))


def test_a_value_that_is_no_json_after_some_were_stored_says_so_too(failing):
    client, _ = failing
    with pytest.raises(IndexingError, match="row 8 cannot be written as JSON") as caught:
        client.index(range(9), {"text": PAIRS["text"][:9]}, [{}] * 8 + [{"a": {1}}], batch_items=3)
    assert caught.value.stored == stored(client)


def test_a_service_that_is_too_busy_in_the_middle_gets_the_rest_later(kind, tmp_path):
    refusals = {3: 2, 5: 1}
    clock = StoppedClock()
    count = {"done": 0}

    class Busy(Watched):
        def refuse(self, request):
            if not request.url.path.endswith("/index"):
                return None
            if refusals.get(count["done"] + 1, 0) > 0:
                refusals[count["done"] + 1] -= 1
                body = {"code": "overloaded", "title": "t", "detail": "d"}
                return httpx.Response(503, json=body, headers={"Retry-After": "2"})
            count["done"] += 1
            return None

        def handle_request(self, request):
            return self.refuse(request) or super().handle_request(request)

        async def handle_async_request(self, request):
            return self.refuse(request) or await super().handle_async_request(request)

    transport = Busy(app_transport(kind, tmp_path / "data"), lambda request, response: None)
    with connected(kind, transport, retries=Retries(clock=clock)) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny")
        assert client.index(range(30), {"text": PAIRS["text"][:30]}, batch_items=5).requests == 6
        assert stored(client) == list(range(30))
    assert clock.waits == [2.2, 2.2, 2.2]


def test_a_bar_is_drawn_over_itself(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for done in (1, 2):
        reporter(True)(Progress(done, 2))
    first, second = sys.stderr.getvalue().removeprefix("\r").split("\r")
    assert len(first) == len(second) - 1
    assert second == f"[{'#' * 30}] 2 of 2 items\n"


def test_errors_of_indexing_can_be_sent_to_other_processes():
    error = pickle.loads(pickle.dumps(IndexingError("why", [1], [2], [2, 3])))
    assert (str(error), error.stored, error.unsure, error.missing) == ("why", [1], [2], [2, 3])
    assert not isinstance(error, ApiError)


def test_payloads_are_sent_as_they_are(client):
    fragment = orjson.Fragment(b'{"n": 1.50, "t": "\\u00e9"}')
    client.index(["a", "b"], {"text": PAIRS["text"][:2]}, [fragment, {"f": np.float32(0.1), "a": np.arange(2)}])
    assert client.get("a").payload == {"n": 1.5, "t": "é"}
    assert client.get("b").payload == {"f": pytest.approx(0.1), "a": [0, 1]}


def test_whoever_interrupts_it_is_told_what_is_stored(client):
    def stop(progress):
        if progress.done == 6:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        client.index(range(9), {"text": PAIRS["text"][:9]}, batch_items=3, progress=stop)
    assert caught.value.__notes__ == ["6 of 9 rows are stored (0 to 5)"]
    assert stored(client) == list(range(6))


def test_any_number_of_ids_is_deleted(kind, tmp_path):
    sent = []

    def after(request, response):
        if request.url.path.endswith("/delete"):
            sent.append((len(json.loads(request.content)["ids"]), request.headers["Idempotency-Key"]))

    transport = Watched(app_transport(kind, tmp_path / "data", max_batch_items=7, max_body_bytes=40_000), after)
    with connected(kind, transport) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny")
        client.index(np.arange(30), {"text": PAIRS["text"][:30]})
        assert client.delete(np.arange(2, 25), idempotency_key="k").deleted == 23
        assert sent == [(7, "k"), (7, "k-7"), (7, "k-14"), (2, "k-21")]
        assert client.delete(np.arange(2, 25), idempotency_key="k").deleted == 23
        assert stored(client) == [0, 1, *range(25, 30)]
        sent.clear()
        assert client.delete(["\n" * 500 + str(i) for i in range(20)]).deleted == 0
        assert [n for n, _ in sent] == [7, 7, 6]


def test_a_key_that_may_only_write_is_told_the_limits(kind, tmp_path):
    with connected(kind, app_transport(kind, tmp_path, max_batch_items=5)) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny")
        secret = create_key(tmp_path, "loader", "write")
    with connected(kind, app_transport(kind, tmp_path, max_batch_items=5), api_key=secret) as client:
        assert client.index(range(12), {name: array[:12] for name, array in PAIRS.items()}).requests == 3
        assert client.caller().scopes == ("write",)
        with pytest.raises(errors.ForbiddenError, match="scope search, got 'loader' with write"):
            client.search({"image": PAIRS["image"][0]})


def test_a_vector_that_is_none_is_not_there(shared):
    image, text = (PAIRS[name][:4].tolist() for name in ("image", "text"))
    image[0] = image[3] = text[1] = None
    shared.index(["a", "b", "c", "d"], {"image": image, "text": [np.array(row) if row else row for row in text]})
    assert {item.id: item.databases for item in shared.items()} == {
        "a": ("text",), "b": ("image",), "c": ("image", "text", "pair"), "d": ("text",),
    }  # fmt: skip
    shared.delete(["a", "b", "c", "d"])
    nothing = shared.index(["a", "b"], {"text": PAIRS["text"][:2], "image": [None, PAIRS["image"][0]]})
    assert nothing.indexed == 2
    shared.delete(["a", "b"])
    for wrong in ([None, None], [None, 1.0], [[1.0], None, [1.0, 2.0]]):
        with pytest.raises(InputError, match=r"features\['image'\]: expected an array"):
            shared.index(range(len(wrong)), {"image": wrong})


def test_batches_that_are_ranked_anew_are_cut_by_what_each_query_looks_at(kind, tmp_path):
    with connected(kind, app_transport(kind, tmp_path, max_results=100, max_batch_queries=9)) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny", keep="float16")
        client.index(range(60), {name: array[:60] for name, array in PAIRS.items()})
        queries = {"text": PAIRS["text"][100:112]}
        for options in ({}, {"oversampling": 2.5}, {"oversampling": 20}):
            found = client.search_batch(queries, limit=4, rescore=True, database="image", **options)
            alone = [
                client.search({"text": row}, limit=4, rescore=True, database="image", **options)
                for row in PAIRS["text"][100:112]
            ]
            assert [hits.ids for hits in found] == [hits.ids for hits in alone]
        with pytest.raises(errors.RequestError, match="expected at most 100 results to rank anew"):
            client.search({"text": PAIRS["text"][0]}, limit=4, rescore=True, oversampling=21)
