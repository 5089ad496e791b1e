"""The one thread that writes: writes that arrive while others are being committed are committed together.

A commit waits for the disk, and takes as long for a hundred writes as for one.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import apsw

from service import deadline, metrics
from service.errors import StorageError
from service.store.connection import storage_errors

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_TOGETHER = 256
_IDLE_SECONDS = 0.2
_TIDY_EVERY = 64  # commits in a row


class _Write:
    """A write that somebody waits for.

    Attributes
    ----------
    work:
        What it does within a transaction. It may be called again if others failed together with it.
    publish:
        What is to be done once it is durable.
    last:
        Whether that is to be done after all that is committed together with it was published.
    expires:
        When the request is over that it belongs to: then it is not begun any more.
    """

    def __init__(
        self, work: Callable[[apsw.Cursor], Any], publish: Callable[[Any], None], *, last: bool = False
    ) -> None:
        self.work = work
        self.publish = publish
        self.last = last
        self.expires = deadline.expires()
        self.done: Future[Any] = Future()
        self.result: Any = None
        self.error: Exception | None = None

    def finish(self) -> None:
        if self.error is not None:
            self.done.set_exception(self.error)
        else:
            self.done.set_result(self.result)


class Writer:
    """Write transactions on one connection.

    Parameters
    ----------
    connection:
        Used by nobody else until `close`.
    before:
        Called before each transaction.
    tidy:
        Called now and then between transactions, often while nothing else is to be done; a short transaction of its
        own. Returns whether there is more to tidy.
    """

    def __init__(
        self, connection: apsw.Connection, before: Callable[[], None], tidy: Callable[[apsw.Cursor], bool]
    ) -> None:
        self._connection = connection
        self._before = before
        self._tidy = tidy
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._accepting = threading.Lock()
        self._closed = False
        self._untidy = True
        self._thread = threading.Thread(target=self._run, name="ccq-write", daemon=True)
        self._thread.start()

    def run(
        self, work: Callable[[apsw.Cursor], T], publish: Callable[[T], None] = lambda _: None, *, last: bool = False
    ) -> T:
        """Do some work within a transaction; its result, once that is durable and published.

        Parameters
        ----------
        work:
            Whatever it raises undoes it, and is raised here. It may be called twice.
        publish:
            Called with the result, in the order of the commits; nothing else is written meanwhile. What it raises is
            raised here, but the write stands.
        last:
            Publish after everything that is committed together with it.

        Raises
        ------
        StorageFullError, StorageBusyError, StorageError
            Nothing was changed. StorageError also after `close`.
        RequestTimeoutError
            It had waited for too long, and was not begun.
        """
        write = _Write(work, publish, last=last)
        with self._accepting:
            if self._closed:
                raise StorageError("the store is closed")
            self._queue.put(write)
        result: T = write.done.result()
        return result

    def close(self) -> None:
        """Finish the writes that were accepted; none is from now on."""
        with self._accepting:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        commits = 0
        while writes := self._take():
            self._commit(writes)
            self._untidy = True
            commits += 1
            if commits % _TIDY_EVERY == 0:
                self._tidy_up()

    def _take(self) -> list[_Write]:
        """All writes that wait, up to so many, in order; none when it is time to end."""
        first = self._wait()
        taken: list[_Write] = []
        while first is not None:
            taken.append(first)
            if len(taken) == MOST_TOGETHER:
                break
            try:
                first = self._queue.get_nowait()
            except queue.Empty:
                break
        else:
            self._queue.put(None)  # the end: it comes again once the writes before it are done
            if not taken:
                return []
        return taken

    def _wait(self) -> _Write | None:
        while True:
            try:
                return self._queue.get(timeout=_IDLE_SECONDS if self._untidy else None)
            except queue.Empty:
                self._tidy_up()

    def _commit(self, writes: list[_Write]) -> None:
        try:
            with storage_errors():
                self._before()
                self._transact(writes)
        except Exception as error:
            if len(writes) > 1:  # one of them may be too large for the disk: the others shall not suffer from it
                for write in writes:
                    write.error = None
                    self._commit([write])
                return
            writes[0].error = writes[0].error or error
        for write in sorted(writes, key=lambda write: write.last):
            if write.error is None:
                try:
                    write.publish(write.result)
                except Exception as error:
                    write.error = error
            write.finish()

    def _transact(self, writes: list[_Write]) -> None:
        db = self._connection.cursor()
        db.execute("BEGIN IMMEDIATE")
        try:
            for write in writes:
                db.execute("SAVEPOINT write")
                try:
                    deadline.check(write.expires)
                    with storage_errors():
                        write.result = write.work(db)
                except Exception as error:
                    write.error = error
                    if not self._connection.in_transaction:  # by an error so grave that SQLite has undone them all
                        raise
                    db.execute("ROLLBACK TO write")
                db.execute("RELEASE write")
            began = time.perf_counter()
            db.execute("COMMIT")
            metrics.committed(time.perf_counter() - began)
        except BaseException:
            if self._connection.in_transaction:
                with suppress(apsw.Error):
                    db.execute("ROLLBACK")
            raise
        finally:
            db.close(True)

    def _tidy_up(self) -> None:
        write = _Write(self._tidy, lambda _: None)
        error: Exception | None
        try:
            with storage_errors():
                self._before()
                self._transact([write])
            error = write.error
        except Exception as raised:
            error = raised
        self._untidy = error is None and bool(write.result)
        if error is not None:  # nothing is lost: it stays untidy until after the next write
            log.warning("the database could not be tidied: %s", error)
