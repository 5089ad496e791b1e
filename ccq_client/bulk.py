"""Indexing any number of rows: cut into requests, and what became of each. It sends nothing itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from ccq_client.arrays import Columns, Features, encode
from ccq_client.calls.call import to_json
from ccq_client.calls.items import Ids, plain_ids
from ccq_client.codes import CodeRows
from ccq_client.errors import CCQError, IndexingError, InputError
from ccq_client.progress import Progress
from ccq_client.results import Indexed

if TYPE_CHECKING:
    from ccq_client.limits import Limits

MAX_ID_BYTES = 512
_HEAD, _TAIL = b'{"items":[', b"]}"


class Rows:
    """What is to be indexed, checked as far as a client can.

    Parameters
    ----------
    ids:
        n ids, each once.
    features:
        (n, P) arrays by modality; a row of NaN is an absent modality. None: there are codes instead.
    payloads, versions:
        n payloads and versions on which to depend, or None for none.
    codes:
        Codes that are stored as they are, with the features beside them if there are any.

    Attributes
    ----------
    rows:
        Numbers of those rows that have any modality; the others are left out.
    left_out:
        How many those are.
    head:
        How the body of a request begins.

    Raises
    ------
    InputError
        They do not fit together, or something cannot be sent.
    """

    def __init__(
        self,
        ids: Ids,
        features: Columns | None,
        payloads: Sequence[Mapping[str, Any] | None] | None = None,
        versions: Sequence[int | None] | None = None,
        codes: CodeRows | None = None,
    ) -> None:
        self._features = None if features is None else Features(features)
        self._codes = codes
        first = codes or self._features
        if first is None:
            raise InputError("features: expected arrays by modality, as in {'image': array of shape (n, P)}")
        n = first.n
        if self._features is not None and self._features.n != n:
            raise InputError(f"features: expected {n} rows, as many as of codes, got {self._features.n}")
        self.head = _HEAD if codes is None else b'{"model_checksum":%s,"items":[' % to_json(codes.checksum)
        names = plain_ids(ids)
        for name, given in (("ids", names), ("payloads", payloads), ("if_versions", versions)):
            if isinstance(given, str | Mapping) or not (given is None or hasattr(given, "__len__")):
                raise InputError(f"{name}: expected a list, one for each of {n} rows, got {type(given).__name__}")
            if given is not None and len(given) != n:
                what = "features" if codes is None else "codes"
                raise InputError(f"{name}: expected {n}, one for each row of {what}, got {len(given)}")
        self._ids = _checked(names)
        self._payloads = payloads
        self._versions = versions
        self.rows: list[int] = first.present.nonzero()[0].tolist()  # of what has features, codes are expected
        self.left_out = n - len(self.rows)

    def check_dimensions(self, expected: Mapping[str, int], collection: str) -> None:
        """InputError if vectors are not as long as the model of the collection wants them."""
        for name, dim in ({} if self._features is None else self._features.dims).items():
            wanted = expected.get(name)
            if wanted is None:
                raise InputError(
                    f"features[{name!r}]: collection {collection} has the modalities {', '.join(expected)}"
                )
            if wanted != dim:
                raise InputError(
                    f"features[{name!r}]: expected vectors of {wanted} numbers, got {dim} (collection {collection})"
                )

    def bodies(self) -> Iterator[bytes]:
        """Each of `rows` as an item in JSON."""
        encoded = repeat({}) if self._features is None else self._features.encoded(self.rows)
        for row, features in zip(self.rows, encoded, strict=self._features is not None):
            item: dict[str, Any] = {"id": self._ids[row]}
            if features:
                item["features"] = features
            if self._codes is not None:
                item["codes"] = {name: encode(code) for name, code in self._codes.row(row).items()}
            if self._payloads is not None:
                item["payload"] = self._payloads[row]
            if self._versions is not None and self._versions[row] is not None:
                item["if_version"] = self._versions[row]
            yield to_json(item, f"row {row}")


class Batch(NamedTuple):
    """The rows of one request, and its body."""

    rows: list[int]
    body: bytes


class Bulk:
    """One call of `index`: its requests, and what became of them. Threads may use it at the same time.

    Parameters
    ----------
    rows:
        What to index.
    limits:
        Those of the service.
    batch_items, batch_bytes:
        Most items and bytes of a request, if the service allows as much.
    report:
        Called after each request that succeeded.
    """

    def __init__(
        self, rows: Rows, limits: Limits, batch_items: int, batch_bytes: int, report: Callable[[Progress], None]
    ) -> None:
        if min(batch_items, batch_bytes) < 1:
            raise InputError(f"expected batches of 1 or more, got {batch_items} items and {batch_bytes} bytes")
        self._rows = rows
        self._limits = limits
        self._items = min(batch_items, limits.max_batch_items)
        self._bytes = min(batch_bytes, limits.max_body_bytes)
        self._report = report
        self._began = time.perf_counter()
        self._lock = threading.Lock()
        self._requests = 0
        self._done = 0
        self._outcomes: list[tuple[list[int], CCQError | None]] = []

    def batches(self) -> Iterator[Batch]:
        """The requests, in the order of rows, each made when it is asked for."""
        head = self._rows.head
        rows: list[int] = []
        items: list[bytes] = []
        size = brackets = 0
        for row, item in zip(self._rows.rows, self._rows.bodies(), strict=True):
            own = item.count(b"{") + item.count(b"[")  # in strings too: that is how the service counts
            if len(head) + len(item) + len(_TAIL) > self._limits.max_body_bytes:
                raise InputError(
                    f"row {row}: its item takes {len(item):,} bytes as JSON, and the service takes "
                    f"{self._limits.max_body_bytes:,} in one request"
                )
            full = len(rows) == self._items or len(head) + size + len(item) + len(_TAIL) > self._bytes
            if rows and (full or brackets + own + 2 > self._limits.max_brackets):
                yield Batch(rows, head + b",".join(items) + _TAIL)
                rows, items, size, brackets = [], [], 0, 0
            rows.append(row)
            items.append(item)
            size += len(item) + 1  # and a comma
            brackets += own
        if rows:
            yield Batch(rows, head + b",".join(items) + _TAIL)

    @contextmanager
    def sending(self, batch: Batch) -> Iterator[None]:
        """While a request is made: how it ends is noted."""
        try:
            yield
        except CCQError as error:
            self._outcomes.append((batch.rows, error))
            raise
        with self._lock:
            self._outcomes.append((batch.rows, None))
            self._requests += 1
            self._done += len(batch.rows)
            self._report(Progress(self._done, len(self._rows.rows)))

    def explain(self, error: CCQError) -> None:
        """Raise `IndexingError` from what ended it, unless nothing was stored: then that says it all."""
        stored = self._stored()
        unsure = sorted(row for rows, failure in self._outcomes if failure and failure.in_doubt for row in rows)
        if not stored and not unsure:
            return
        known = set(stored)
        missing = [row for row in self._rows.rows if row not in known]
        at = next((f" of rows {_ranges(rows)}" for rows, failure in self._outcomes if failure is error), "")
        doubt = f", of rows {_ranges(unsure)} it is not known" if unsure else ""
        message = f"the request{at} failed; {self.state()}{doubt}. {error}"
        raise IndexingError(message, stored, unsure, missing) from error

    def state(self) -> str:
        """In words, what is stored by now."""
        stored = self._stored()
        which = f" ({_ranges(stored)})" if stored else ""
        return f"{len(stored):,} of {len(self._rows.rows):,} rows are stored{which}"

    def _stored(self) -> list[int]:
        return sorted(row for rows, failure in self._outcomes if failure is None for row in rows)

    def summary(self) -> Indexed:
        """What was done."""
        return Indexed(self._done, self._rows.left_out, self._requests, time.perf_counter() - self._began)


def _checked(ids: list[str]) -> list[str]:
    """The same; InputError where one is too long, or there twice."""
    found: dict[str, int] = {}
    for row, item_id in enumerate(ids):
        size = len(item_id.encode())
        if not 1 <= size <= MAX_ID_BYTES:
            raise InputError(f"ids[{row}]: expected 1 to {MAX_ID_BYTES} bytes of UTF-8, got {size}")
        if item_id in found:
            raise InputError(f"ids[{found[item_id]}] and ids[{row}] are both {item_id!r}: expected each id once")
        found[item_id] = row
    return ids


def _ranges(rows: Sequence[int]) -> str:
    """Ascending numbers as people write them: ``0 to 99, 200``; no more than five ranges."""
    breaks = [place for place, (one, other) in enumerate(pairwise(rows), 1) if other != one + 1]
    starts = [0, *breaks]
    ends = [*breaks, len(rows)]
    parts = [
        str(rows[lo]) if hi == lo + 1 else f"{rows[lo]} to {rows[hi - 1]}" for lo, hi in zip(starts, ends, strict=True)
    ]
    return ", ".join([*parts[:5], *(["..."] if len(parts) > 5 else [])])
