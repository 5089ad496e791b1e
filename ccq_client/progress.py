"""How far something is, as a bar on standard error."""

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


def draw(share: float, words: str, *, last: bool = False) -> None:
    """A bar and words behind it, over what was drawn before; the last one ends its line."""
    bar = "#" * round(_WIDTH * share)
    sys.stderr.write(f"\r[{bar:<{_WIDTH}}] {words}" + "\n" * last)
    sys.stderr.flush()


def _show(progress: Progress) -> None:
    share = progress.done / progress.total
    draw(share, f"{progress.done:,} of {progress.total:,} items", last=progress.done == progress.total)


def _ignore(_: Progress) -> None:
    pass
