"""Filters, against a plain evaluator that is written from their description."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.filters import compile_filter
from service.schemas.filters import MAX_CONDITIONS, MAX_DEPTH, MAX_VALUES, Filter
from tests.service.harness import assert_problem, features

KEYS = ["a", "b", "a.b", "b.a", "a.a.b", "c"]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, -2.0, 0.5, 1e300, 2**53 + 1, 2**64 - 1]),
    st.sampled_from(["", "x", "1", "true"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)
payloads = st.none() | st.dictionaries(st.sampled_from(["a", "b", "c"]), values, max_size=3)
numbers = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 2**53 + 1])
conditions = st.one_of(
    st.builds(lambda k, v: {"key": k, "match": {"value": v}}, st.sampled_from(KEYS), scalars),
    st.builds(lambda k, v: {"key": k, "match": {"any": v}}, st.sampled_from(KEYS), st.lists(scalars, max_size=3)),
    st.builds(
        lambda k, v: {"key": k, "range": v},
        st.sampled_from(KEYS),
        st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), numbers, min_size=1, max_size=2),
    ),
    st.builds(lambda k, v: {"key": k, "exists": v}, st.sampled_from(KEYS), st.booleans()),
    st.builds(lambda v: {"ids": v}, st.lists(st.sampled_from(["x", "y"]), max_size=2)),
)


def _clauses(inner):
    return st.dictionaries(st.sampled_from(["must", "should", "must_not"]), st.lists(inner, max_size=3), max_size=3)


filters = _clauses(st.recursive(conditions, _clauses, max_leaves=6))


def elements(value):
    """The value, or the elements of an array and of the arrays in it."""
    if isinstance(value, list):
        for inner in value:
            yield from elements(inner)
    else:
        yield value


def reach(value, steps):
    """All that a path leads to."""
    if not steps:
        yield value
        return
    for element in elements(value):
        if isinstance(element, dict) and steps[0] in element:
            yield from reach(element[steps[0]], steps[1:])


def equal(a, b):
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def holds(condition, item_id, payload):
    if "ids" in condition:
        return item_id in condition["ids"]
    if "key" not in condition:
        return matches(condition, item_id, payload)
    found = list(reach(payload, condition["key"].split(".")))
    if "exists" in condition:
        return bool(found) == condition["exists"]
    leaves = [leaf for value in found for leaf in elements(value)]
    if "match" in condition:
        match = condition["match"]
        return any(equal(leaf, wanted) for leaf in leaves for wanted in match.get("any", [match.get("value")]))
    tests = {
        "gt": lambda a, b: a > b,
        "gte": lambda a, b: a >= b,
        "lt": lambda a, b: a < b,
        "lte": lambda a, b: a <= b,
    }
    plain = [leaf for leaf in leaves if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)]
    return any(all(tests[name](leaf, bound) for name, bound in condition["range"].items()) for leaf in plain)


def matches(condition, item_id, payload):
    should = condition.get("should", [])
    return (
        all(holds(c, item_id, payload) for c in condition.get("must", []))
        and (not should or any(holds(c, item_id, payload) for c in should))
        and not any(holds(c, item_id, payload) for c in condition.get("must_not", []))
    )


@given(filters, payloads, st.sampled_from(["x", "z"]))
def test_a_filter_means_what_its_description_says(condition, payload, item_id):
    predicate = compile_filter(Filter.model_validate(condition), orjson.dumps({"filter": condition}))
    stored = None if payload is None else orjson.dumps(payload)
    assert predicate(item_id, stored) == matches(condition, item_id, payload)


@pytest.mark.parametrize(
    ("condition", "payload", "result"),
    [
        ({"key": "a", "match": {"value": 1}}, {"a": 1.0}, True),
        ({"key": "a", "match": {"value": 1}}, {"a": True}, False),
        ({"key": "a", "match": {"value": True}}, {"a": 1}, False),
        ({"key": "a", "match": {"value": "1"}}, {"a": 1}, False),
        ({"key": "a", "match": {"value": None}}, {"a": None}, True),
        ({"key": "a", "match": {"value": None}}, {}, False),
        ({"key": "a", "match": {"value": 2**53}}, {"a": 2**53 + 1}, False),
        ({"key": "a", "range": {"gt": 0}}, {"a": True}, False),
        ({"key": "a", "range": {"gt": 0}}, {"a": "1"}, False),
        ({"key": "a", "range": {"gt": 1, "lt": 3}}, {"a": [0, 2, 5]}, True),
        ({"key": "a", "range": {"gt": 1, "lt": 3}}, {"a": [0, 5]}, False),
        ({"key": "a.b", "match": {"value": "x"}}, {"a": [{"b": "y"}, {"b": ["x"]}]}, True),
        ({"key": "a", "exists": True}, {"a": None}, True),
        ({"key": "a", "exists": True}, {"a": []}, True),
        ({"key": "a.b", "exists": True}, {"a": []}, False),
        ({"key": "a", "exists": False}, None, True),
    ],
)
def test_particular_cases(condition, payload, result):
    predicate = compile_filter(Filter.model_validate({"must": [condition]}), b"")
    assert predicate("x", None if payload is None else orjson.dumps(payload)) is result


def test_the_oracle_is_not_always_of_one_mind():
    assert holds({"key": "a", "match": {"any": [1, 2]}}, "x", {"a": [2]})
    assert not holds({"key": "a", "match": {"any": [1, 2]}}, "x", {"a": [3]})


PLACE_OF_THE_INTEGER = "#/filter/must/0/must_not/0/match/any/1"


def nested(depth):
    condition = {"key": "a", "exists": True}
    for _ in range(depth):
        condition = {"must": [condition]}
    return condition


@pytest.mark.parametrize(
    ("condition", "pointer"),
    [
        ({"must": [{"key": "a", "match": {"value": [1]}}]}, "#/filter/must/0/match/value"),
        ({"should": [{"ids": ["x"]}, {"key": "a"}]}, "#/filter/should/1"),
        ({"must_not": [{"must": [{"key": "a", "range": {"gt": "1"}}]}]}, "#/filter/must_not/0/must/0/range/gt"),
        ({"must": [{"key": "a", "range": {}}]}, "#/filter/must/0/range"),
        ({"must": [{"key": "a", "match": {}}]}, "#/filter/must/0/match"),
        ({"must": [{"key": "a", "match": {"value": 1, "any": [1]}}]}, "#/filter/must/0/match"),
        ({"must": [{"key": "a", "match": {"value": 1}, "exists": True}]}, "#/filter/must/0/exists"),
        ({"must": [{"key": "", "exists": True}]}, "#/filter/must/0/key"),
        ({"must": {"key": "a", "exists": True}}, "#/filter/must"),
        ({"must": ["x"]}, "#/filter/must/0"),
        ({"all": []}, "#/filter/all"),
        ({"must": [{"ids": [1.5]}]}, "#/filter/must/0/ids/0"),
        ([], "#/filter"),
        (nested(MAX_DEPTH + 1), "#/filter"),
        (nested(400), None),
        ({"should": [{"key": "a", "exists": True}] * (MAX_CONDITIONS + 1)}, "#/filter"),
        ({"must": [{"ids": ["x"] * MAX_VALUES}, {"key": "a", "match": {"any": [1]}}]}, "#/filter"),
        ({"must": [{"key": "a." * 501, "exists": True}]}, "#/filter/must/0/key"),
        ({"must": [{"key": "a", "match": {"value": 2**64}}]}, "#/filter/must/0/match/value"),
        ({"must": [{"must_not": [{"key": "a", "match": {"any": [1e30, -(10**30)]}}]}]}, PLACE_OF_THE_INTEGER),
        ({"must": [{"key": "a", "range": {"lt": 10**400}}]}, None),
    ],
)
def test_malformed_filters_are_named(filled, condition, pointer):
    for path, rest in (("/search", {"query": features(0)}), ("/items/delete", {})):
        response = filled.post(path, {**rest, "filter": condition})
        if pointer is None and response.status_code == 400:
            continue
        problem = assert_problem(response, 422, "invalid_request")
        assert problem["errors"][0]["pointer"] == pointer or pointer is None
    assert filled.ok("GET", "/collections/default")["items"] == 60


def test_the_deepest_and_the_longest_filters_that_are_allowed(filled):
    for condition in (
        nested(MAX_DEPTH),
        {"should": [{"key": "n", "exists": True}] * MAX_CONDITIONS},
        {"must": [{"ids": ["item-1"] * MAX_VALUES}]},
        {"must_not": [{"key": ".".join("a" * 500), "match": {"value": 1e30}}]},
    ):
        assert filled.post("/search", {"query": features(0), "filter": condition}).status_code == 200


def test_a_range_of_dates_is_told_what_to_do(filled):
    when = {"must": [{"key": "made", "range": {"gte": "2026-05-01T00:00:00"}}]}
    problem = assert_problem(filled.post("/search", {"query": features(1), "filter": when}), 422, "invalid_request")
    assert problem["detail"] == (
        "filter.must[0].range.gte: expected a number, got '2026-05-01T00:00:00'; dates can be compared as numbers "
        "alone, such as seconds since 1970"
    )
    words = {"must": [{"key": "made", "range": {"gte": "may"}}]}
    problem = assert_problem(filled.post("/search", {"query": features(1), "filter": words}), 422, "invalid_request")
    assert problem["detail"] == "filter.must[0].range.gte: expected a number, got 'may'"
