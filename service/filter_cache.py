"""What filters matched, for searches that filter alike: as long as the collection has not changed, that is the answer.

Filters recur, and to find what one matches may take far longer than the search itself: every payload is read where no
index tells.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from service.store.interface import Seqs

Key = tuple[int, int, bytes]
"""Number and version of a collection, and a filter as JSON."""

_OVERHEAD = 200  # bytes that an entry takes besides its numbers and its filter


class FilterCache:
    """The last results of filters, those that were used last. For any number of threads.

    Parameters
    ----------
    most:
        Bytes that they may take together; 0: none is kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, Seqs] = OrderedDict()

    def find(self, key: Key, work: Callable[[], Seqs]) -> Seqs:
        """What a filter matches: as it was found before, or by `work`. Not to be written to."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                return found
        found = work()
        with self._lock:
            if key not in self._entries and _size(key, found) <= self._most:
                self._entries[key] = found
                self._size += _size(key, found)
                while self._size > self._most:
                    self._size -= _size(*self._entries.popitem(last=False))
        return found


def _size(key: Key, seqs: Seqs) -> int:
    return _OVERHEAD + len(key[-1]) + seqs.nbytes
