"""What people see: one console for results, one for progress, which leaves standard output to programs.

Text is printed as it is: an id, a payload or a path may hold [brackets] and :colons:. Styles are given as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ccq_core import Progress as Trained

out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)


@contextmanager
def training_progress(label: str) -> Iterator[Callable[[Trained], None]]:
    """A progress bar on standard error; yields the callback for `CCQ.fit`."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task(label, total=None, loss="-")

        def report(step: Trained) -> None:
            progress.update(task, total=step.iterations, completed=step.iteration, loss=f"{step.loss:.4f}")

        yield report
        # Converged: the bar is full even where fewer iterations were needed than allowed.
        progress.update(task, total=1, completed=1)


@contextmanager
def row_progress(label: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error; yields what is told how many rows of all are done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(label, total=rows)
        yield lambda done: progress.update(task, completed=done)
