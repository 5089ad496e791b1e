"""Parts of payloads: what keys lead to, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.parts import Parts
from tests.service.test_filters import payloads

KEYS = ["a", "b", "a.b", "b.a", "a.a.b", "c", "c.c"]


@pytest.mark.parametrize(
    ("keys", "payload", "expected"),
    [
        (["a"], None, None),
        (["a"], {}, {}),
        (["x"], {"a": 1}, {}),
        (["a"], {"b": 1, "a": None}, {"a": None}),
        (["a"], {"a": {}}, {"a": {}}),
        (["a"], {"a": []}, {"a": []}),
        (["a.b"], {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1}}),
        (["a.b"], {"a": {"c": 2}}, {}),
        (["a.b"], {"a": 1}, {}),
        (["a.b"], {"a": [{"b": 1, "c": 2}, 3, {"b": 4}, {"c": 5}], "d": 5}, {"a": [{"b": 1}, {"b": 4}]}),
        (["a.b"], {"a": [[{"b": [1, 2]}], []]}, {"a": [[{"b": [1, 2]}]]}),
        (["a.b", "a"], {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 2}}),
        (["a", "a.b"], {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 2}}),
        (["a.b", "a.c", "a.b"], {"a": {"b": 1, "c": 2, "d": 3}}, {"a": {"b": 1, "c": 2}}),
        (["a.b.c", "a.b"], {"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1, "d": 2}}}),
        (["", "a.", ".b"], {"": {"b": 1}, "a": {"": 2, "x": 3}}, {"": {"b": 1}, "a": {"": 2}}),
        (["ü.☃"], {"ü": {"☃": "🐈"}, "u": 1}, {"ü": {"☃": "🐈"}}),
    ],
)
def test_parts(keys, payload, expected):
    assert Parts(keys).of(payload) == expected


def test_the_order_is_that_of_the_payload():
    assert list(Parts(["a", "c", "b"]).of({"c": 1, "b": 2, "a": 3})) == ["c", "b", "a"]


def leaves(value, way=()):
    """Every value that is no object or array, and those that are empty, with the keys that lead there."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*way, key))
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, way)
    else:
        yield way, repr(value)


@given(payloads, st.lists(st.sampled_from(KEYS), min_size=1, max_size=3))
def test_what_is_left_is_what_the_keys_lead_to(payload, keys):
    wanted = [tuple(key.split(".")) for key in keys]
    left = [
        (way, leaf)
        for way, leaf in leaves(payload or {})
        if way and any(way[: len(steps)] == steps for steps in wanted)
    ]
    found = Parts(keys).of(payload)
    assert (found is None) == (payload is None)
    assert [(way, leaf) for way, leaf in leaves(found or {}) if way] == left


def test_deep_payloads_and_keys():
    payload = value = {}
    for _ in range(240):
        value["a"] = [{}]
        value = value["a"][0]
    value["b"] = 1
    key = ".".join(["a"] * 240 + ["b"])
    assert Parts([key, key + ".b.b"]).of(payload) == payload
    assert Parts([".".join(["a"] * 500)]).of(payload) == {}
