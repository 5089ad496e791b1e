"""Searches by examples: the mean of unit positives minus the mean of unit negatives."""

import numpy as np
import pytest

from ccq_core import CCQ
from service.schemas.search import SearchReply
from tests.service.harness import InProcess, assert_problem, features
from tests.service.plain import DATABASES, Plain, fill_with_ties, latents, shown

LEFT_OUT = "query_by: positive and negative examples leave no direction to search in: they cancel each other out"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = InProcess(tmp_path_factory.mktemp("examples") / "data", max_batch_queries=20)
    service.create()
    fill_with_ties(service)
    yield service
    service.close()


@pytest.fixture(scope="module")
def plain(service):
    return Plain(service)


def search(service, body):
    reply = service.ok("POST", "/search", body)
    SearchReply.model_validate(reply)
    return reply["results"]


def point(plain, examples):
    """The mean direction (1, D), in double precision."""
    points = [plain.point(example) if isinstance(example, str) else latents(example) for example in examples]
    return np.mean([row / np.linalg.norm(row) for row in np.array(points, dtype=np.float64)], axis=0)


SIDES = [
    (["item-1"], []),
    (["item-2", "item-5"], []),
    (["item-2"], ["item-7"]),
    ([features(3)], ["item-7"]),
    (["item-2", features(3, "text"), features(9, "image")], [features(4), "item-9", "item-11"]),
    (["item-2", "item-2", "item-5"], []),
    (["item-2"], ["item-5", "item-2"]),
]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("positive", "negative"), SIDES)
def test_the_query_is_the_mean_of_the_one_minus_that_of_the_other(service, plain, positive, negative, metric):
    latent = point(plain, positive) - (point(plain, negative) if negative else 0)
    stored = {example for example in (*positive, *negative) if isinstance(example, str)}
    for names in (["image"], DATABASES):
        want = shown(plain.search(latent.astype(np.float32), names, metric, leave_out=stored))
        body = {"query_by": {"positive": positive, "negative": negative}, "database": names, "metric": metric}
        hits = search(service, {**body, "limit": 1000})
        assert len(hits) == len(want)
        assert stored.isdisjoint(hit["id"] for hit in hits)
        assert [hit["distance"] for hit in hits] == pytest.approx([hit["distance"] for hit in want], abs=1e-5)
        assert {hit["id"]: hit["payload"] for hit in hits} == {hit["id"]: hit["payload"] for hit in want}
        assert search(service, {**body, "limit": 3}) == hits[:3]
        assert search(service, {**body, "limit": 3, "offset": 3}) == hits[3:6]


def test_results_are_not_fewer_for_what_is_left_out(service):
    """The examples are of one object, so they would be the first results."""
    near = [f"item-{i}" for i in range(0, 60, 8)]
    body = {"query_by": {"positive": near}, "database": ["image", "pair"]}
    hits = search(service, {**body, "limit": 60})
    for limit in (1, 3, 10):
        reply = service.ok("POST", "/search", {**body, "limit": limit})
        assert reply["results"] == hits[:limit]
        assert reply["next_cursor"] is not None


def test_one_positive_is_a_search_by_it(service):
    for example, query in (("item-2", {"query_id": "item-2"}), (features(3), {"query": features(3)})):
        want = search(service, {**query, "limit": 30})
        hits = search(service, {"query_by": {"positive": [example]}, "limit": 30})
        assert [hit["distance"] for hit in hits] == pytest.approx([hit["distance"] for hit in want], abs=1e-5)


def test_examples_count_by_direction_and_not_by_length(bare):
    """Twice the features of a modality have another length in the latent space, but no other weight."""
    bare.create()
    fill_with_ties(bare)
    held = Plain(bare)
    lengths = [np.linalg.norm(held.point(f"item-{i}")) for i in range(9)]
    long, short = f"item-{int(np.argmax(lengths))}", f"item-{int(np.argmin(lengths))}"
    assert max(lengths) > 1.01 * min(lengths)
    hits = search(bare, {"query_by": {"positive": [long, short]}, "database": "image", "limit": 100})
    want = held.search(point(held, [long, short]).astype(np.float32), ["image"], "cosine", leave_out={long, short})
    assert [hit["distance"] for hit in hits] == pytest.approx([hit["distance"] for hit in want], abs=1e-5)


def test_integers_are_ids_and_ids_may_be_strange(service):
    service.create("strange")
    names = ["7", "é🐈", "a/b.c", "\x00"]
    items = [{"id": name, "features": features(i), "payload": {"i": i}} for i, name in enumerate(names)]
    service.ok("POST", "/collections/strange/index", {"items": items})
    body = {"query_by": {"positive": [7, "é🐈"], "negative": ["a/b.c"]}, "limit": 10}
    hits = service.ok("POST", "/collections/strange/search", body)["results"]
    assert [hit["id"] for hit in hits] == ["\x00"]


@pytest.mark.parametrize(
    ("query_by", "pointer", "words"),
    [
        ({"positive": ["nobody"]}, "#/query_by/positive/0", "query_by.positive[0]: no item 'nobody'"),
        ({"positive": ["item-1", "x"]}, "#/query_by/positive/1", "query_by.positive[1]: no item 'x'"),
        ({"positive": ["item-1"], "negative": [5]}, "#/query_by/negative/0", "query_by.negative[0]: no item '5'"),
        ({"positive": [features(1), "é" * 256]}, "#/query_by/positive/1", "query_by.positive[1]: no item 'ééé"),
    ],
)
def test_unknown_items_are_named(service, query_by, pointer, words):
    problem = assert_problem(service.post("/search", {"query_by": query_by}), 404, "item_not_found")
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["errors"][0]["detail"].startswith(words)


@pytest.mark.parametrize(
    ("query_by", "code", "pointer", "words"),
    [
        ({}, "invalid_request", "#/query_by/positive", "query_by.positive: missing"),
        ([], "invalid_request", "#/query_by", "query_by: expected an object"),
        ({"positive": []}, "invalid_request", "#/query_by/positive", "query_by.positive: expected at least one"),
        ({"negative": ["a"]}, "invalid_request", "#/query_by/positive", "query_by.positive: missing"),
        ({"positive": "item-1"}, "invalid_request", "#/query_by/positive", "query_by.positive: expected a list"),
        (
            {"positive": ["a"], "negative": None},
            "invalid_request",
            "#/query_by/negative",
            "query_by.negative: expected",
        ),
        ({"positive": ["a"], "neutral": []}, "invalid_request", "#/query_by/neutral", "query_by.neutral: unknown key"),
        ({"positive": [{}]}, "invalid_request", "#/query_by/positive/0", "query_by.positive[0]: expected features"),
        ({"positive": [""]}, "invalid_request", "#/query_by/positive/0", "query_by.positive[0]: expected 1 to 512"),
        ({"positive": [1.5]}, "invalid_request", "#/query_by/positive/0", "query_by.positive[0]: expected a string"),
        ({"positive": [None]}, "invalid_request", "#/query_by/positive/0", "query_by.positive[0]: expected a string"),
        ({"positive": [["a"]]}, "invalid_request", "#/query_by/positive/0", "query_by.positive[0]: expected a string"),
        ({"positive": ["a"] * 21}, "invalid_request", "#/query_by", "query_by: expected at most 20 examples, got 21"),
        (
            {"positive": ["a"] * 11, "negative": ["a"] * 10},
            "invalid_request",
            "#/query_by",
            "query_by: expected at most",
        ),
        (
            {"positive": ["item-1", {"sound": [1]}]},
            "unknown_modality",
            "#/query_by/positive/1/sound",
            "query_by.positive[1].sound: unknown modality",
        ),
        (
            {"positive": ["item-1"], "negative": [features(1), {"image": [1]}]},
            "invalid_features",
            "#/query_by/negative/1/image",
            "query_by.negative[1].image: expected 12 numbers, got 1",
        ),
        ({"positive": ["item-1"], "negative": ["item-1"]}, "invalid_request", "#/query_by", LEFT_OUT),
        ({"positive": [features(1)], "negative": [features(1)] * 3}, "invalid_request", "#/query_by", LEFT_OUT),
        (
            {"positive": [features(1), "item-2"], "negative": ["item-2", features(1)]},
            "invalid_request",
            "#/query_by",
            LEFT_OUT,
        ),
    ],
)
def test_examples_that_make_no_sense(service, query_by, code, pointer, words):
    problem = assert_problem(service.post("/search", {"query_by": query_by}), 422, code)
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["errors"][0]["detail"].startswith(words)


def test_examples_are_one_of_four_kinds_of_query(service):
    both = {"query_by": {"positive": ["item-1"]}, "query_id": "item-1"}
    problem = assert_problem(service.post("/search", both), 422, "invalid_request")
    assert problem["detail"] == (
        "expected exactly one of query, queries, query_id and query_by, got query_id and query_by"
    )


def test_an_example_that_the_model_maps_to_nothing_is_not_cancelled_by_others(tmp_path):
    service = InProcess(tmp_path / "data")
    model = CCQ(bits=8, preprocess="center", mapping="procrustes", iterations=1).fit({"v": np.ones((300, 4))})
    assert service.request("PUT", "/models/flat", content=model.to_bytes()).status_code == 201
    service.put("/collections/default", {"model": "flat"})
    service.ok("POST", "/index", {"items": [{"id": "a", "features": {"v": [1, 1, 1, 1]}}]})
    problem = assert_problem(service.post("/search", {"query_by": {"positive": ["a"]}}), 422, "invalid_request")
    assert problem["detail"].endswith("no direction to search in: the model maps that example to nothing")
    service.close()
