"""Which compiled kernels run, and on how many threads.

A level is a set of CPU instructions: ``avx512vbmi``, ``avx2``, ``neon`` or ``portable``; the best one that this CPU has
is taken. ``numpy`` is no compiled kernel at all but the readable reference, hundreds of times slower, that all others
are tested against. Threads are as many as there are processors; calls at the same time share them, and results do not
depend on their number. The environment variables ``CCQ_SIMD_LEVEL`` and ``CCQ_THREADS`` set both at import.
"""

from __future__ import annotations

import os

from ccq_core import _native
from ccq_core.errors import InvalidInputError
from ccq_core.processors import processors

NUMPY = "numpy"
MAX_THREADS = 1024

_level = _native.levels()[0]
_threads = min(processors(), MAX_THREADS)


def levels() -> tuple[str, ...]:
    """The levels that can be set on this CPU, best first."""
    return (*_native.levels(), NUMPY)


def get_level() -> str:
    """The level in force."""
    return _level


def set_level(name: str) -> None:
    """Force a level, for the whole process; InvalidInputError if this CPU lacks it."""
    global _level
    if name not in levels():
        raise InvalidInputError(f"SIMD level: expected one of {', '.join(levels())} on this CPU, got {name!r}")
    _level = name


def get_threads() -> int:
    """Threads that one search or one encoding may use."""
    return _threads


def set_threads(n: int) -> None:
    """Let one search or one encoding use up to n threads, for the whole process; InvalidInputError for another n."""
    global _threads
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_THREADS:
        raise InvalidInputError(f"threads: expected a whole number from 1 to {MAX_THREADS}, got {n!r}")
    _threads = n


def _from_environment() -> None:
    if level := os.environ.get("CCQ_SIMD_LEVEL"):
        set_level(level)
    if threads := os.environ.get("CCQ_THREADS"):
        set_threads(int(threads) if threads.isdecimal() else -1)


_from_environment()
