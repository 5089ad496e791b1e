"""Parts of a payload: what keys lead to, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_NOTHING = object()


class Parts:
    """Which parts of a payload are wanted.

    Parameters
    ----------
    keys:
        Paths, as in filters: ``a.b`` is key ``b`` of the object under ``a``, and of each object in an array there.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._tree: dict[str, Any] = {}  # an inner dict for each step; None where a key ends
        for key in keys:
            *way, last = key.split(".")
            node: dict[str, Any] | None = self._tree
            for step in way:
                node = None if node is None else node.setdefault(step, {})
            if node is not None:
                node[last] = None

    def of(self, payload: dict[str, Any] | None) -> dict[str, Any] | None:
        """The payload without everything that no key leads to, and without the objects and arrays that this empties."""
        if payload is None:
            return None
        found = _select(payload, self._tree)
        return {} if found is _NOTHING else found


def _select(value: Any, tree: dict[str, Any] | None) -> Any:
    if tree is None:
        return value
    if isinstance(value, dict):
        chosen = {}
        for key, inner in value.items():
            if key in tree:
                found = _select(inner, tree[key])
                if found is not _NOTHING:
                    chosen[key] = found
        return chosen or _NOTHING
    if isinstance(value, list):
        several = []
        for inner in value:
            found = _select(inner, tree)
            if found is not _NOTHING:
                several.append(found)
        return several or _NOTHING
    return _NOTHING
