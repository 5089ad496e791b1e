"""Latent vectors that results are ranked anew by. What was read once stays in memory, within bounds.

To read the features of a hundred candidates from the database and to map them takes longer than the whole rest of a
search. Items come up again, and neither an item's features nor a generation's model ever change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ccq_core.features import Float32
from ccq_core.scan import Keys
from service.store.interface import Seqs

Key = tuple[int, int, str]
"""Number and generation of a collection, and a database."""

_MOST = 32767
_OTHER_BYTES = 12  # that a row takes besides its numbers
_LEAST_ROWS = 1024


@dataclass(frozen=True)
class Latents:
    """Latent vectors (n, D) in 16 bits a number.

    A number is wrong by at most 1/65534 of the largest of its vector. All are rounded, those in memory and those that
    were just read, so what a search finds does not depend on what is in memory.

    Attributes
    ----------
    numbers:
        (n, D) int16: parts of the scale, from -32767 to 32767.
    scales:
        (n,) float32.
    """

    numbers: NDArray[np.int16]
    scales: Float32

    @classmethod
    def of(cls, z: Float32) -> Self:
        """Some latent vectors (n, D), rounded."""
        scales = np.abs(z).max(axis=1, initial=0.0).astype(np.float32) / np.float32(_MOST)
        parts = np.divide(z, scales[:, None], out=np.zeros_like(z), where=scales[:, None] > 0)
        return cls(np.clip(np.rint(parts), -_MOST, _MOST).astype(np.int16), scales)

    @classmethod
    def joined(cls, several: Sequence[Latents]) -> Self:
        """The rows of all, one after the other."""
        return cls(np.concatenate([one.numbers for one in several]), np.concatenate([one.scales for one in several]))

    def __len__(self) -> int:
        return len(self.scales)

    def take(self, rows: NDArray[np.intp]) -> Latents:
        """Some of the rows."""
        return Latents(self.numbers[rows], self.scales[rows])

    def distances(self, point: Keys, metric: str) -> tuple[Keys, Float32, Float32]:
        """Keys (n,) float64 to rank by, distances and scores (n,) of a query's latent vector (D,) float64."""
        z = self.numbers.astype(np.float64)
        if metric == "cosine":  # whatever the scales
            lengths = np.sqrt(np.einsum("nd,nd->n", z, z)) * np.linalg.norm(point)
            keys = -np.divide(z @ point, lengths, out=np.zeros(len(z)), where=lengths > 0)
            distances = np.clip(1.0 + keys, 0.0, 2.0).astype(np.float32)
            return keys, distances, 1 - distances
        z *= self.scales[:, None]
        keys = np.square(z - point).sum(axis=1)
        distances = keys.astype(np.float32)
        return keys, distances, 0 - distances


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

    def find(self, key: Key, items: int, dim: int, seqs: Seqs, work: Callable[[Seqs], Latents]) -> Latents:
        """Latent vectors (n, D) of items.

        Parameters
        ----------
        key, items, dim:
            The collection and database that they are in, how many items that holds, and D.
        seqs:
            (n,) distinct sequence numbers.
        work:
            What gives the latent vectors of some of these, in the order of `seqs`.
        """
        with self._lock:
            places = self._of(key, items, dim)
            if places is None:
                there = np.zeros(len(seqs), dtype=bool)
            else:
                there, found = places.get(seqs)
        if places is None or not there.any():
            found = work(seqs)
            there[:] = False
        elif not there.all():
            missing = work(seqs[~there])
            found.numbers[~there], found.scales[~there] = missing.numbers, missing.scales
        if places is not None and not there.all():
            with self._lock:
                places.put(seqs[~there], found.take(np.flatnonzero(~there)))
        return found

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
            while self._places and sum(place.nbytes for place in self._places.values()) + rows * row_bytes > self._most:
                self._places.popitem(last=False)
            places = self._places[key] = _Places(rows, dim)
        self._places.move_to_end(key)
        return places


class _Places:
    """Rows of latent vectors, each in the one place that its sequence number leads to; the last that came has it.

    Memory that was never written to is not taken.
    """

    def __init__(self, rows: int, dim: int) -> None:
        self._owners = np.zeros(rows, dtype=np.int64)  # sequence numbers begin with 1
        self._numbers = np.zeros((rows, dim), dtype=np.int16)
        self._scales = np.zeros(rows, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def nbytes(self) -> int:
        return self._owners.nbytes + self._numbers.nbytes + self._scales.nbytes

    def get(self, seqs: Seqs) -> tuple[NDArray[np.bool_], Latents]:
        """Which are there; and rows for all, of which the others mean nothing."""
        at = seqs % len(self)
        return self._owners[at] == seqs, Latents(self._numbers[at], self._scales[at])

    def put(self, seqs: Seqs, latents: Latents) -> None:
        at = seqs % len(self)
        self._owners[at] = seqs
        self._numbers[at], self._scales[at] = latents.numbers, latents.scales
