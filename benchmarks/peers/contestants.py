"""All services that can be measured, by name."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

from benchmarks.peers.ccq import BITS, KEPT, CCQService
from benchmarks.peers.chroma import Chroma
from benchmarks.peers.contestant import Contestant
from benchmarks.peers.usearch import DTYPES, USearch


def everyone() -> list[Contestant]:
    """One of each, in the order that they are measured in."""
    ccq = [CCQService(bits, kept) for bits in BITS for kept in KEPT]
    return [Chroma(), *(USearch(dtype) for dtype in DTYPES), *ccq]


def chosen(patterns: Sequence[str]) -> list[Contestant]:
    """Those whose names match any of the patterns of a shell; everyone without patterns.

    Raises
    ------
    ValueError
        A pattern matches none.
    MissingPeerError
        One that was chosen is not installed.
    """
    known = everyone()
    for pattern in patterns:
        if not any(fnmatch(one.name, pattern) for one in known):
            names = ", ".join(one.name for one in known)
            raise ValueError(f"no service is called {pattern!r}; expected a pattern for one of {names}")
    found = [one for one in known if not patterns or any(fnmatch(one.name, pattern) for pattern in patterns)]
    for one in found:
        one.check()
    return found
