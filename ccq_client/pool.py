"""Several requests at one time, for threads and for tasks: the two halves that differ between the clients."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def each(work: Callable[[T], None], things: Iterator[T], at_once: int) -> None:
    """Do the work on every thing, on so many at one time. After a failure no more are begun, and it is raised."""
    if at_once == 1:
        for thing in things:
            work(thing)
        return
    lock, ended = threading.Lock(), threading.Event()

    def worker() -> None:
        try:
            while not ended.is_set():
                with lock:
                    thing = next(things)
                work(thing)
        except StopIteration:
            pass
        except BaseException:
            ended.set()
            raise

    with ThreadPoolExecutor(at_once) as threads:
        try:
            futures = [threads.submit(worker) for _ in range(at_once)]
            for future in futures:
                future.result()
        finally:
            ended.set()


async def each_async(work: Callable[[T], Awaitable[None]], things: Iterator[T], at_once: int) -> None:
    """The same, in tasks."""
    import asyncio

    ended = False

    async def worker() -> None:
        nonlocal ended
        try:
            while not ended:
                try:
                    thing = next(things)
                except StopIteration:
                    return
                await work(thing)
        except BaseException:
            ended = True
            raise

    failures = await asyncio.gather(*(worker() for _ in range(at_once)), return_exceptions=True)
    for failure in failures:
        if failure is not None:
            raise failure
