"""Headers of requests, without the objects that a framework makes of them for each."""

from __future__ import annotations

from starlette.types import Scope


def header(scope: Scope, name: bytes) -> str:
    """The first header of a name, which is in lower case; empty if there is none."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""
