"""What every reply has to be, whatever was asked."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import orjson

from service.problems import KINDS, NO_METHOD, NO_ROUTE
from tests.service.harness import assert_problem

_CODES = {kind.code: kind.status for kind in (*KINDS.values(), NO_METHOD, NO_ROUTE)}
_UNDER_LOAD = {"overloaded", "timeout", "memory", "collection_loading", "not_ready"}


def assert_reply(response: Any, body: bytes | None = None, template: str = "") -> None:
    """A success, or a problem of the one shape that is the client's and whose places are in the request.

    Parameters
    ----------
    response:
        Of httpx.
    body:
        The body of the request.
    template:
        The route's path, with its parameters in braces.
    """
    assert response.status_code < 400 or response.headers["content-type"] == "application/problem+json", response.text
    if response.status_code < 400 or response.request.method == "HEAD":
        return
    code = response.json()["code"]
    problem = assert_problem(response, _CODES[code], code)
    assert response.status_code < 500 or code in _UNDER_LOAD, problem
    assert problem["detail"]
    for fault in problem["errors"]:
        assert fault["detail"]
        pointer = fault["pointer"]
        if pointer.startswith("#") and response.request.headers["content-type"] == "application/octet-stream":
            assert re.fullmatch(r"#(/[^/]+(/\d+)?)?", pointer)  # a file of arrays
        elif pointer.startswith("#"):
            _assert_resolves(pointer, body or b"")
        elif pointer.startswith("?"):
            assert pointer[1:] in response.request.url.params, pointer
        elif pointer.startswith("{"):
            assert pointer in template, (pointer, template)
        elif not pointer.startswith("/"):
            assert pointer in response.request.headers, pointer
        else:
            assert pointer.startswith(("/collections/", "/models/")), pointer


def _assert_resolves(pointer: str, body: bytes) -> None:
    """A pointer leads to something in the body; its last step may be what is missing there."""
    value = orjson.loads(body)
    steps = [unquote(step).replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")[1:]]
    if pointer.endswith("…"):  # cut, as the key was long
        steps = steps[:-1]
    for i, step in enumerate(steps):
        if isinstance(value, list):
            assert step in map(str, range(len(value))), (pointer, body[:300])
            value = value[int(step)]
        else:
            assert isinstance(value, dict), (pointer, body[:300])
            assert step in value or i == len(steps) - 1, (pointer, body[:300])
            value = value.get(step)
