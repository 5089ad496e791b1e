"""Connections for reading: as many at one time as are asked for, and for a moment none, so that the log can be emptied.

SQLite starts its write-ahead log over only when nobody reads. Where one read begins before another has ended, for ever,
the log grows with every write, for ever.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from service.errors import StorageError, WouldTakeLongError
from service.store.connection import open_reader

_LEAST_CACHE_KIB = 256


class Readers:
    """Read transactions on one database.

    Parameters
    ----------
    path:
        The database, which exists.
    cache_bytes:
        Memory that pages may take which were read before, at most and about. The connection that is used most gets one
        half of it, the next one a quarter, and so on.
    """

    def __init__(self, path: Path, cache_bytes: int) -> None:
        self._path = path
        self._cache_bytes = cache_bytes
        self._idle: list[tuple[int, apsw.Connection]] = []  # a heap: that with the most pages is taken first
        self._free: list[int] = [0]  # places in the order of connections, a heap too; the last is that of the next
        self._reading = 0
        self._held = False
        self._closed = False
        self._changed = threading.Condition()

    @contextmanager
    def read(self, *, wait: bool = True) -> Iterator[apsw.Cursor]:
        """A read transaction on a connection of its own. A thread that has one must not ask for another.

        Raises WouldTakeLongError where it would have to be waited for and `wait` is False.
        """
        place, connection = self._borrow(wait)
        try:
            db = connection.cursor()
            try:
                db.execute("BEGIN")
                yield db
            finally:
                db.close(True)
        finally:
            self._give_back(place, connection)

    def lend(self) -> Callable[[], None]:
        """Count a transaction of another process as one of these, until what is returned is called, once.

        Raises WouldTakeLongError while none may begin.
        """
        with self._changed:
            if self._held or self._closed:
                raise WouldTakeLongError
            self._reading += 1
        return self._taken_back

    def _taken_back(self) -> None:
        with self._changed:
            self._reading -= 1
            self._changed.notify_all()

    @contextmanager
    def held(self, seconds: float) -> Iterator[bool]:
        """Let no transaction begin meanwhile; whether all that are open have ended within some seconds."""
        with self._changed:
            self._held = True
            alone = self._changed.wait_for(lambda: not self._reading, seconds)
        try:
            yield alone
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()

    def close(self) -> None:
        """Let no transaction begin any more; those that are open end when they end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            for _, connection in self._idle:
                connection.close()
            self._idle.clear()

    def _borrow(self, wait: bool) -> tuple[int, apsw.Connection]:
        with self._changed:
            if self._held and not wait:
                raise WouldTakeLongError
            self._changed.wait_for(lambda: self._closed or not self._held)
            if self._closed:
                raise StorageError("the store is closed")
            found = heapq.heappop(self._idle) if self._idle else self._open()
            self._reading += 1
            return found

    def _open(self) -> tuple[int, apsw.Connection]:
        place = self._free[0]
        connection = open_reader(self._path, max(self._cache_bytes >> (11 + place), _LEAST_CACHE_KIB))
        heapq.heappop(self._free)
        if not self._free:
            self._free.append(place + 1)
        return place, connection

    def _give_back(self, place: int, connection: apsw.Connection) -> None:
        with self._changed:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            finally:
                self._reading -= 1
                self._changed.notify_all()
                if self._closed or connection.in_transaction:
                    connection.close()
                    heapq.heappush(self._free, place)
                else:
                    heapq.heappush(self._idle, (place, connection))
