"""Latent vectors are read in the background once results are ranked anew by some of them, where memory holds them all.

Then only the first searches wait for the database. It works half of the time, so that searches have the other half.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from service.errors import ServiceError
from service.latents import Key, LatentCache
from service.mirror import Mirror
from service.tables import Coder

log = logging.getLogger(__name__)

_TOGETHER = 1024  # items that are read at a time; searches wait for the interpreter while their records are taken apart


class Warming:
    """Fills a cache of latent vectors. For any number of threads.

    Parameters
    ----------
    cache:
        What to fill.
    """

    def __init__(self, cache: LatentCache) -> None:
        self.cache = cache
        self._lock = threading.Lock()
        self._begun: set[Key] = set()
        self._ended = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="warming")

    def close(self) -> None:
        """End, within moments."""
        with self._lock:
            self._ended.set()
        self._thread.shutdown(cancel_futures=True)

    def begin(self, key: Key, collection: Mirror, coder: Coder, missing: int) -> None:
        """Read all items of a collection and database, of which one was missing, unless that is being done.

        Parameters
        ----------
        missing:
            Its sequence number.
        """
        with self._lock:
            through = self.cache.through(key)
            if self._ended.is_set() or key in self._begun or through is None or missing <= through:
                return
            self._begun.add(key)
            self._thread.submit(self._read_all, key, collection, coder)

    def _read_all(self, key: Key, collection: Mirror, coder: Coder) -> None:
        try:
            while not self._ended.is_set():
                started = time.monotonic()
                if not self._read_some(key, collection, coder):
                    break
                self._ended.wait(time.monotonic() - started)
        except ServiceError as error:  # as when the collection was deleted; a search says what is wrong
            log.debug("collection %r: latent vectors are not read ahead: %s", collection.record.name, error)
        except Exception:
            log.exception("collection %r: latent vectors are not read ahead", collection.record.name)
        finally:
            with self._lock:
                self._begun.discard(key)

    def _read_some(self, key: Key, collection: Mirror, coder: Coder) -> bool:
        """Read the next items; whether there may be more."""
        after = self.cache.through(key)
        if after is None:
            return False
        with collection.read() as (view, snapshot):
            records = snapshot.kept_behind(after, _TOGETHER)
        if view.coder is not coder or not records or collection.kept is None:
            return False
        _, _, database = key
        has, latents = collection.kept.latents([record for _, record in records], database, coder.model)
        seqs = np.array([seq for seq, _ in records])
        return self.cache.fill(key, after, int(seqs[-1]), seqs[has], latents)


def latent_key(coder: Coder, database: str) -> Key:
    """What a cache calls the latent vectors of a database as a collection's model gives them."""
    return coder.record.number, coder.record.generation, database
