"""Pages of a ranking: by offset, and behind a cursor.

A cursor names the last hit of a page by its place in the order: key, sequence number and database. What follows is
found by searching as deep as that hit was, and deeper if items were put before it meanwhile. So a page is exactly what
follows in the ranking of its own moment, and an item that stays as it is comes on one page only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import struct
from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
import orjson

from ccq_core.features import Float32
from service.errors import Fault, InvalidRequestError
from service.places import shorten
from service.ranking import Ranking
from service.schemas.search import SearchRequest
from service.store.interface import CollectionRecord

_LAYOUT = struct.Struct(">dqIq8s")  # 36 bytes are 48 of base64, without padding
_RANKED = ("database", "score_threshold", "filter", "metric")


class Page(NamedTuple):
    """A part of a ranking.

    Attributes
    ----------
    rows:
        The rows of the page; empty behind the last one.
    depth:
        How many rows there are up to the end of the page.
    more:
        Whether rows follow.
    """

    rows: Ranking
    depth: int
    more: bool


class Cursor(NamedTuple):
    """The end of a page.

    Attributes
    ----------
    key, seq, database:
        Of the page's last hit, as in `Ranking`.
    depth:
        How many rows there were up to that hit.
    search:
        Which search it belongs to (see `search_digest`).
    """

    key: float
    seq: int
    database: int
    depth: int
    search: bytes

    @classmethod
    def behind(cls, page: Page, search: bytes) -> Self:
        """The cursor that leads on from a page, which is not empty."""
        rows = page.rows
        return cls(float(rows.keys[-1]), int(rows.seqs[-1]), int(rows.databases[-1]), page.depth, search)

    @classmethod
    def read(cls, text: str) -> Self:
        """A cursor from a request; InvalidRequestError if no page gave it."""
        try:
            cursor = cls(*_LAYOUT.unpack(base64.b64decode(text, altchars=b"-_", validate=True)))
            if not math.isfinite(cursor.key) or cursor.depth < 0:
                raise ValueError("no page ends there")  # noqa: TRY301 (all that is no cursor is refused alike)
        except (binascii.Error, struct.error, ValueError):
            raise _refused(f"expected the next_cursor of a page, got {shorten(text)}") from None
        return cursor

    def write(self) -> str:
        """The cursor for a reply."""
        fields = (self.key, self.seq, self.database, self.depth, self.search)
        return base64.urlsafe_b64encode(_LAYOUT.pack(*fields)).decode()

    def check(self, search: bytes) -> None:
        """InvalidRequestError if the cursor is of another search."""
        if self.search != search:
            raise _refused(
                "expected a cursor of this search, got one of another query or collection, or of a model before"
            )

    def ahead(self, ranking: Ranking) -> int:
        """How many rows of a ranking come up to this place."""
        keys, seqs, databases = ranking.keys, ranking.seqs, ranking.databases
        before = (seqs < self.seq) | ((seqs == self.seq) & (databases <= self.database))
        return int(np.count_nonzero((keys < self.key) | ((keys == self.key) & before)))


def search_digest(
    request: SearchRequest, collection: CollectionRecord, points: Float32, stored: tuple[int, ...]
) -> bytes:
    """What tells a search from others: all that its ranking depends on, and nothing of its pages.

    Parameters
    ----------
    request, collection:
        The request, and the collection as it is: with another model its rankings are others.
    points:
        Latent vectors of the query, which are the same for the same request, and shorter than features.
    stored:
        Sequence numbers of the stored items that the query names: an item that was indexed again is another query.
    """
    parts = [getattr(request, name) for name in _RANKED]
    data = orjson.dumps([collection.number, collection.generation, parts, stored], default=vars)
    return hashlib.blake2b(data + points.tobytes(), digest_size=8).digest()


def rows_to_search(request: SearchRequest, cursor: Cursor | None, max_limit: int) -> int:
    """How deep to search for a page at first: one row more than it has, which tells whether anything follows."""
    seen = request.offset if cursor is None else cursor.depth
    return min(seen + request.limit, max_limit) + 1


def cut_page(rankings: Iterable[Ranking], request: SearchRequest, cursor: Cursor | None, max_limit: int) -> Page:
    """The page that a request asks for, of the first ranking that is long enough for it, or else the last.

    Parameters
    ----------
    rankings:
        Ever longer ones, from `rows_to_search` on and up to `max_limit` + 1 rows or one that is complete.
    request, cursor:
        The request, and its cursor as it was read.
    max_limit:
        How many rows of a ranking can be reached.

    Raises
    ------
    InvalidRequestError
        The cursor leads to where no search goes.
    """
    for ranking in rankings:
        start = request.offset if cursor is None else cursor.ahead(ranking)
        if len(ranking) > start + request.limit:
            break
    if start >= max_limit and not (ranking.complete and start == len(ranking)):
        raise _refused(
            f"the page would begin behind the first {max_limit} results, and no search goes deeper (CCQ_MAX_LIMIT)"
        )
    end = min(start + request.limit, max_limit)
    return Page(ranking.take(slice(start, end)), end, more=len(ranking) > end)


def _refused(reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault.at(("cursor",), reason)])
