"""Work in several threads, whose results come in the order of what is worked on."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """The results of some work on each of `items`, which are taken a few ahead of the results.

    An error of the work is raised in its place. One in taking items is raised behind the results of those before.
    """
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque()
        source = iter(items)
        failure: Exception | None = None
        try:
            while failure is None:
                try:
                    waiting.append(pool.submit(work, next(source)))
                except Exception as error:
                    failure = error
                while waiting and (failure is not None or len(waiting) > threads):
                    yield waiting.popleft().result()
            if not isinstance(failure, StopIteration):
                raise failure
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def stop_at_interrupt() -> Iterator[threading.Event]:
    """An event that is set at the first Ctrl-C; a second one interrupts."""
    stop = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
