"""How far `index` is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

_WIDTH = 30


@dataclass(frozen=True, slots=True)
class Progress:
    """So many of so many rows are stored."""

    done: int
    total: int


def reporter(progress: bool | Callable[[Progress], None]) -> Callable[[Progress], None]:
    """What is called with each `Progress`: the user's function, a line on standard error, or nothing."""
    if callable(progress):
        return progress
    return _show if progress else _ignore


def _show(progress: Progress) -> None:
    """A bar, drawn over the one before; a line of its own at the end."""
    share = progress.done / progress.total
    bar = "#" * round(_WIDTH * share)
    end = "\n" if progress.done == progress.total else ""
    sys.stderr.write(f"\r[{bar:<{_WIDTH}}] {progress.done:,} of {progress.total:,} items{end}")
    sys.stderr.flush()


def _ignore(_: Progress) -> None:
    pass
