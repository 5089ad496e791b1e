"""Latent vectors that results are ranked anew by. What was read once stays in memory, within bounds.

To read the features of a hundred candidates from the database and to map them takes longer than the whole rest of a
search. Items come up again, and neither an item's features nor a generation's model ever change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ccq_core.latents import Latents
from ccq_core.scan import Keys
from service.store.interface import Seqs

Key = tuple[int, int, str]
"""Number and generation of a collection, and a database."""

_OTHER_BYTES = 12  # that a row takes besides its numbers
_LEAST_ROWS = 1024


class LatentCache:
    """Latent vectors of items that were looked at before. For any number of threads.

    Parameters
    ----------
    most:
        Bytes that they may take together; 0: none is kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._places: OrderedDict[Key, _Places] = OrderedDict()

    def keys(
        self,
        key: Key,
        items: int,
        seqs: Seqs,
        point: NDArray[np.float64],
        metric: str,
        read: Callable[[Seqs], Latents],
    ) -> Keys:
        """Keys (n,) float64 of items by their latent vectors.

        Parameters
        ----------
        key, items:
            The collection and database that they are in, and how many items that holds.
        seqs:
            (n,) distinct sequence numbers.
        point, metric:
            As for `ccq_core.latents.Latents.keys`.
        read:
            What gives the latent vectors of some of these, in the order of their sequence numbers.
        """
        with self._lock:
            places = self._of(key, items, len(point))
            if places is not None:
                there, keys = places.keys(seqs, point, metric)
        if places is None:
            there, keys = np.zeros(len(seqs), dtype=bool), np.empty(len(seqs))
        if not there.all():
            missing = np.flatnonzero(~there)
            latents = read(seqs[missing])
            keys[missing] = latents.keys(np.arange(len(latents)), point, metric)
            if places is not None:
                with self._lock:
                    places.put(seqs[missing], latents)
        return keys

    def through(self, key: Key) -> int | None:
        """Up to which sequence number `fill` was given all items; None where there is no room for all."""
        with self._lock:
            places = self._places.get(key)
            return None if places is None or not places.all_fit else places.through

    def fill(self, key: Key, after: int, through: int, seqs: Seqs, latents: Latents) -> bool:
        """Take the latent vectors of all items with sequence numbers from one to another.

        Returns whether there still is room for those of all items, and `after` is what `through` says.
        """
        with self._lock:
            places = self._places.get(key)
            if places is None or not places.all_fit or places.through != after:
                return False
            places.put(seqs, latents)
            places.through = through
            return True

    def _of(self, key: Key, items: int, dim: int) -> _Places | None:
        """The places of a collection and database; None where there is no room for any."""
        row_bytes = 2 * dim + _OTHER_BYTES
        most_rows = self._most // row_bytes
        places = self._places.get(key)
        if places is None or items > len(places) < most_rows:
            rows = min(max(2 * items, _LEAST_ROWS), most_rows)
            if not rows:
                return None
            self._places.pop(key, None)
            self._forget_before(key)
            while self._places and sum(place.nbytes for place in self._places.values()) + rows * row_bytes > self._most:
                self._places.popitem(last=False)
            places = self._places[key] = _Places(rows, dim)
        places.all_fit = items <= len(places)
        self._places.move_to_end(key)
        return places

    def _forget_before(self, key: Key) -> None:
        """Let go of what a collection's earlier models made of its items."""
        number, generation, _ = key
        for other in [one for one in self._places if one[0] == number and one[1] < generation]:
            del self._places[other]


class _Places:
    """Rows of latent vectors, each in the one place that its sequence number leads to; the last that came has it.

    Attributes
    ----------
    all_fit:
        Whether there are as many places as items.
    through:
        See `LatentCache`.
    """

    def __init__(self, rows: int, dim: int) -> None:
        self.all_fit = False
        self.through = 0
        self._owners = np.zeros(rows, dtype=np.int64)  # sequence numbers begin with 1
        self._latents = Latents.empty(rows, dim)

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def nbytes(self) -> int:
        return self._owners.nbytes + self._latents.nbytes

    def keys(self, seqs: Seqs, point: NDArray[np.float64], metric: str) -> tuple[NDArray[np.bool_], Keys]:
        """Which are there; and keys for all, of which the others mean nothing."""
        at = seqs % len(self)
        return self._owners[at] == seqs, self._latents.keys(at, point, metric)

    def put(self, seqs: Seqs, latents: Latents) -> None:
        at = seqs % len(self)
        self._owners[at] = seqs
        self._latents.numbers[at], self._latents.scales[at] = latents.numbers, latents.scales
