"""Bodies that are nearly right: a good one, with something else in one place, or with damage to its text."""

from __future__ import annotations

import base64
import copy
import json
import random
from typing import Any

import numpy as np

from tests.service.harness import features, item

_FILTER = {"must": [{"key": "n", "range": {"gte": 1, "lt": 9}}], "should": [{"ids": ["item-1", 2]}, {"must_not": []}]}
_BASE64 = base64.b64encode(np.arange(12, dtype="<f4").tobytes()).decode()
ENCODERS = {"text": "letters", "image": "bytes"}
GOOD: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("POST", "/index"): [
        {"items": [item(1, "image"), {**item(2), "payload": None}, {"id": 7, "features": {"image": _BASE64}}]},
        {"items": [item(3, a={"b": [1, {"c": None}]})]},
        {"items": [{"id": 8, "features": {"text": "a bad cabbage", "image": {"base64": _BASE64}}}]},
    ],
    ("POST", "/search"): [
        {"query": features(1), "database": ["image", "text"], "limit": 5, "offset": 2, "filter": _FILTER},
        {"queries": [features(1), features(2, "text")], "with_payload": False, "metric": "euclidean"},
        {"query_id": "item-2", "database": "image", "score_threshold": 0.5, "with_payload": ["n", "a.b"]},
        {"query_by": {"positive": ["item-2", features(3)], "negative": ["item-5"]}},
        {"query": features(4, "image"), "group_by": "even", "group_size": 2, "limit": 3},
        {"query": features(4, "image"), "cursor": "AAAA"},
        {"query": {"text": "a bad cabbage", "image": {"base64": _BASE64}}, "database": "pair"},
        {"queries": [{"text": {"text": "face"}}, features(2, "text")], "database": "text"},
    ],
    ("POST", "/facets"): [{"key": "even", "limit": 3, "filter": _FILTER}],
    ("POST", "/items/list"): [
        {"filter": _FILTER, "limit": 7, "with_codes": True},
        {"filter": {"must": [{"ids": ["item-1", 7]}]}, "cursor": "AAAAAAAAAAE", "with_features": False},
        {"limit": 0},
    ],
    ("POST", "/items/delete"): [
        {"ids": ["item-50", 51, "nobody"]},
        {"filter": {"must": [{"key": "n", "match": {"any": [57, "x", True]}}]}},
    ],
    ("PUT", "/collections/default"): [{"model": "tiny", "indexes": ["n", "a.b"], "encoders": ENCODERS}],
}
TEXTS = [
    "",
    " ",
    ".",
    "..",
    "a.b.",
    "\x00",
    "\n",
    "\ufeff",
    "\uffff",
    "e\u0301",
    "\u202eabc",
    "🐈\u200d⬛",
    "x" * 2000,
    "#/a~1b",
]
NUMBERS = [0, -1, 1, 1.0, -0.0, 0.5, 2**31, 2**53 + 1, 2**63, 2**64 - 1, -(2**63), 3.5e38, 1e15, 1e16, 1e308, 5e-324]
OTHERS: list[Any] = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": None},
    [1, "1"],
    {"ids": []},
    {"must": [{}]},
    [[[[{}]]]],
]
# Put into the text where a value stands: Python's json would not write these.
RAW = [
    "1e400",
    "-1e999999",
    "1e-999999",
    "9" * 400,
    "0x10",
    "01",
    "1.",
    ".5",
    "+1",
    "NaN",
    "-Infinity",
    "18446744073709551616",
    '"\\ud800"',
    '"\\udfff\\ud800"',
    '"\\u0000"',
    '"\\x"',
    '"',
    "[" * 2000,
    "[" * 200 + "]" * 200,
    "[" * 5000 + "]" * 5000,
    '{"a":' * 500 + "1" + "}" * 500,
    '{"a":1,"a":2}',
    "'x'",
    "nul",
    "",
    "1,2",
    "/**/1",
    "\ufeff1",
    '"\ud7ff"',
]


def nearly_right(good: Any, rng: random.Random) -> bytes:
    """A body with one to three changes."""
    body = copy.deepcopy(good)
    for _ in range(rng.choice([1, 1, 2, 3])):
        body = _changed(body, rng)
    if rng.random() < 0.3:
        return _raw(body, rng)
    text = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    return _damaged(text, rng) if rng.random() < 0.2 else text


def _changed(body: Any, rng: random.Random) -> Any:
    """With another value in one place, or without it, or with one more."""
    places = list(_places(body))
    holder, key = rng.choice(places) if places else (None, None)
    if holder is None:
        return _value(rng)
    action = rng.choice(["replace", "replace", "replace", "remove", "add", "repeat"])
    if action == "replace":
        holder[key] = _value(rng)
    elif action == "remove":
        del holder[key]
    elif isinstance(holder, dict):
        holder[rng.choice([*TEXTS, "id", "ids", "filter", "query", "must", "match", "any", "range"])] = _value(rng)
    else:
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]) if action == "repeat" else _value(rng))
    return body


def _places(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _value(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(rng.choice([TEXTS, NUMBERS, OTHERS])))


def _raw(body: Any, rng: random.Random) -> bytes:
    places = list(_places(body))
    if not places:
        return rng.choice(RAW).encode("utf-8", "surrogatepass")
    holder, key = rng.choice(places)
    holder[key] = "@@here@@"
    return json.dumps(body).replace('"@@here@@"', rng.choice(RAW)).encode("utf-8", "surrogatepass")


def _damaged(text: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(text) + 1)
    return rng.choice(
        [
            text[:at],
            text[:at] + bytes([rng.randrange(256)]) + text[at:],
            text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :],
            b"\xef\xbb\xbf" + text,
            text + b" " * 10,
            text + text,
            text.decode("utf-8", "replace").encode("utf-16"),
            b" \n\t" + text,
        ]
    )
