"""What a search process holds: copies of collections, which follow what the server tells of its writes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from service import metrics, requestid
from service.errors import ServiceError, StorageBusyError, WouldTakeLongError
from service.mirror import Mirror, T
from service.responses import to_json
from service.searchers.messages import Answers, Ask, Changed, Load, Reply
from service.searching import Caches, search_together
from service.settings import Settings
from service.store.connection import load_checksums
from service.store.interface import CollectionRecord
from service.store.reading import DATABASE_NAME, SQLiteReading
from service.traits import stored_model

log = logging.getLogger(__name__)

_TRIES = 50  # a write that the database has is told within moments


class _Source(SQLiteReading):
    """The store, read while the server writes to it."""

    def exclusively(self, work: Callable[[], T]) -> T:  # noqa: ARG002 (as the server's store has it)
        """Refuse: nobody here can keep the server from writing."""
        raise StorageBusyError("writes come too fast to read what they did")


class Replicas:
    """Copies of collections. One thread tells what was written, and one searches."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        load_checksums()
        self._source = _Source(settings.data / DATABASE_NAME, settings.page_cache_bytes)
        self._caches = Caches.of(settings)
        self._mirrors: dict[int, Mirror] = {}
        self._missed: dict[int, tuple[Load, list[Changed]]] = {}  # by collection, while it is loaded
        self._lock = threading.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._scanned = [0, 0]
        metrics.tell_scans(self._scan)

    def load(self, order: Load, told: Callable[[bool], None]) -> None:
        """Load a collection, in a thread of its own; `told` is called with whether that was done."""
        with self._lock:
            self._mirrors.pop(order.record.number, None)
            self._missed[order.record.number] = order, []
        self._loader.submit(self._load, order, told)

    def drop(self, number: int) -> None:
        """Let go of a collection."""
        with self._lock:
            self._mirrors.pop(number, None)
            self._missed.pop(number, None)

    def follow(self, told: Changed) -> None:
        """Do to a copy what was done to the collection."""
        with self._lock:
            if told.number in self._missed:
                self._missed[told.number][1].append(told)
            elif told.number in self._mirrors:
                self._followed(self._mirrors[told.number], told)

    def answer(self, asks: Sequence[Ask]) -> Iterator[Answers]:
        """Reply to searches of one collection, all in one pass; one answer to each of those that asked."""
        bodies = [body for ask in asks for body in ask.bodies]
        replies: list[Reply | None] = [None] * len(bodies)
        mirror = self._mirrors.get(asks[0].number)
        requestid.current.set(" ".join(filter(None, (ask.request_ids for ask in asks))))
        self._scanned[:] = 0, 0
        if mirror is not None:
            try:
                found = search_together(mirror, bodies, self._settings, self._caches, quick=True)
                for i, answer in found:
                    if not isinstance(answer, Exception):
                        replies[i] = Reply(to_json(answer.reply), answer.limit, answer.queries)
            except (ServiceError, WouldTakeLongError) as error:
                log.debug("searches are left to the server: %s", error)
            except Exception:
                log.exception("searches are left to the server")
        rest = iter(replies)
        for ask in asks:
            yield Answers(ask.batch, list(islice(rest, len(ask.bodies))), *self._scanned)
            self._scanned[:] = 0, 0  # it is counted once

    def _scan(self, rows: int, scanned: int) -> None:
        self._scanned[0] += rows
        self._scanned[1] += scanned

    def _load(self, order: Load, told: Callable[[bool], None]) -> None:
        mirror = self._mirror(order.record)
        number = order.record.number
        with self._lock:
            current, missed = self._missed.get(number, (None, []))
            if current is not order:
                return
            if mirror is not None:
                for change in missed:
                    self._followed(mirror, change)
                self._mirrors[number] = mirror
            del self._missed[number]
        told(mirror is not None)

    def _mirror(self, record: CollectionRecord) -> Mirror | None:
        try:
            return self._read(record)
        except ServiceError as error:  # deleted or encoded anew meanwhile, or damaged, which the server's log says too
            log.info("collection %r could not be loaded: %s", record.name, error)
        except Exception:
            log.exception("collection %r could not be loaded", record.name)
        return None

    def _read(self, record: CollectionRecord) -> Mirror:
        model = stored_model(record.model, self._source.model_file(record.model)[1])
        return Mirror(self._source, record, model, quick_tries=_TRIES)

    def _followed(self, mirror: Mirror, told: Changed) -> None:
        layout = mirror.view.coder.layout
        mirror.follow(told.change, None if told.records is None else layout.unpack(told.records))
