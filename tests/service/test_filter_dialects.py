"""Filters as other databases write them are refused, with what they would be here."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.schemas.dialects import in_our_words
from service.schemas.filters import Filter
from tests.service.harness import assert_problem, features

CHEAP = {"key": "price", "range": {"lt": 3}}
RED = {"key": "colour", "match": {"value": "red"}}
WARM = {"key": "colour", "match": {"any": ["red", "orange"]}}


def offered(filter_):
    return json.loads(in_our_words(filter_, Filter.model_validate) or "null")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"colour": "red"}, {"must": [RED]}),
        ({"colour": ["red", "orange"]}, {"must": [WARM]}),
        ({"colour": None}, {"must": [{"key": "colour", "match": {"value": None}}]}),
        ({"colour": "red", "price": {"lt": 3}}, {"must": [RED, CHEAP]}),
        ({"colour": {"$eq": "red"}}, {"must": [RED]}),
        ({"colour": {"$ne": "red"}}, {"must_not": [RED]}),
        ({"colour": {"$in": ["red", "orange"]}}, {"must": [WARM]}),
        ({"colour": {"$nin": ["red", "orange"]}}, {"must_not": [WARM]}),
        ({"price": {"$gte": 1, "$lt": 3}}, {"must": [{"key": "price", "range": {"gte": 1, "lt": 3}}]}),
        (
            {"price": {"$gte": 1, "$ne": 2}},
            {"must": [{"key": "price", "range": {"gte": 1}}], "must_not": [{"key": "price", "match": {"value": 2}}]},
        ),
        ({"$and": [{"colour": "red"}, {"price": {"$lt": 3}}]}, {"must": [RED, CHEAP]}),
        ({"$or": [{"colour": "red"}, {"price": {"$lt": 3}}]}, {"should": [RED, CHEAP]}),
        ({"$or": [{"colour": "red", "price": {"$lt": 3}}]}, {"should": [{"must": [RED, CHEAP]}]}),
        ({"$or": [{"colour": {"$ne": "red"}}]}, {"should": [{"must_not": [RED]}]}),
        ({"must": [CHEAP], "colour": "red"}, {"must": [CHEAP, RED]}),
        ({"must_not": [{"colour": "red"}], "price": {"lt": 3}}, {"must_not": [RED], "must": [CHEAP]}),
        (
            {"should": [{"must": [RED, CHEAP]}], "x": 1},
            {"should": [{"must": [RED, CHEAP]}], "must": [{"key": "x", "match": {"value": 1}}]},
        ),
        (RED, {"must": [RED]}),
        (CHEAP, {"must": [CHEAP]}),
        ({"field": "colour", "value": "red"}, {"must": [RED]}),
        ({"key": "colour", "match": "red"}, {"must": [RED]}),
        ({"key": "colour", "match": {"except": ["red", "orange"]}}, {"must_not": [WARM]}),
        ({"key": "colour", "exists": True}, {"must": [{"key": "colour", "exists": True}]}),
        ({"has_id": [1, "b"]}, {"must": [{"ids": [1, "b"]}]}),
        ({"is_empty": {"key": "colour"}}, {"must": [{"key": "colour", "exists": False}]}),
    ],
)
def test_what_is_meant(theirs, ours):
    assert offered(theirs) == ours
    Filter.model_validate(ours)


@pytest.mark.parametrize(
    "unclear",
    [
        {},
        {"$or": []},
        {"$nor": [{"colour": "red"}]},
        {"$and": {"colour": "red"}},
        {"colour": {}},
        {"colour": {"$regex": "r.*"}},
        {"colour": {"$eq": ["red"]}},
        {"colour": {"$in": "red"}},
        {"price": {"lt": "3"}},
        {"price": {"lt": 3, "near": 4}},
        {"key": "colour"},
        {"": 1},
        {"has_id": [[]]},
        {f"k{i}": i for i in range(9)},
        {"$and": [{"a": i} for i in range(9)]},
        {"$and": [{"$and": [{"$and": [{"$and": [{"a": 1}]}]}]}]},
        {"colour": "r" * 200},
        ["colour"],
        "colour = 'red'",
        None,
    ],
)
def test_where_it_is_unclear_nothing_is_offered(unclear):
    assert offered(unclear) is None


words = st.sampled_from(
    ["key", "field", "must", "should", "must_not", "ids", "match", "range", "exists", "value", "any", "is_empty"]
    + [f"${word}" for word in ("and", "or", "not", "eq", "ne", "in", "nin", "gt", "lt", "exists")]
    + ["a", "b.c", ""]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)


@given(anything)
def test_what_is_offered_is_a_filter_which_has_nothing_to_offer_itself(theirs):
    ours = offered(theirs)
    if ours is not None:
        Filter.model_validate(ours)
        assert offered(ours) == ours


UNKNOWN = "unknown key, expected must, should, must_not"


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (
            {"price": {"$lt": 3}},
            f'filter.price: {UNKNOWN}; here it would be {{"must": [{{"key": "price", "range": {{"lt": 3}}}}]}}',
        ),
        (
            {"must": [{"c": "red"}]},
            f'filter.must[0].c: {UNKNOWN}; here it would be {{"must": [{{"key": "c", "match": {{"value": "red"}}}}]}}',
        ),
        ({"mustnot": []}, "filter.mustnot: unknown key, did you mean 'must_not'?"),
        ({"colour": {"$regex": "r"}}, f"filter.colour: {UNKNOWN}"),
        ("price < 3", "filter: expected an object of must, should, must_not, got 'price < 3'"),
        (
            {"must": [{"key": "c", "match": "x"}]},
            'filter.must[0].match: expected {"value": ...} or {"any": [...]}, got \'x\'',
        ),
        (
            {"must": [{"key": "c", "match": {"except": [1]}}]},
            (
                "filter.must[0].match.except: unknown key, expected value, any; values are excluded by "
                '{"any": [...]} under must_not'
            ),
        ),
    ],
)
def test_a_search_is_told(filled, theirs, words):
    problem = assert_problem(filled.post("/search", {"query": features(1), "filter": theirs}), 422, "invalid_request")
    assert problem["detail"] == words
