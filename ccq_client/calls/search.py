"""Requests that search one collection; `root` is the collection's path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ccq_client.arrays import Features, Sent, vectors
from ccq_client.calls.call import Call, to_json
from ccq_client.calls.items import plain_id
from ccq_client.errors import InputError
from ccq_client.results import Group, Groups, Hit, Hits, make

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ccq_client.limits import Limits

_OVERSAMPLING = 4  # of the service, where none is asked for

Vectors = Mapping[str, "ArrayLike"]
"""One vector of each modality, or (n, P) arrays of several objects; texts or images where the service has encoders."""


class Query(NamedTuple):
    """What to search for: exactly one of features, a stored item's id, and examples.

    Attributes
    ----------
    features:
        A vector of one or several modalities.
    by_id:
        A stored item, which is left out of its own results.
    like, unlike:
        Ids or features that results are to be like, and those that they are not to be like.
    """

    features: Vectors | None = None
    by_id: str | int | None = None
    like: Sequence[str | int | Vectors] | None = None
    unlike: Sequence[str | int | Vectors] | None = None

    def body(self) -> dict[str, Any]:
        """The part of the request that says this.

        Raises
        ------
        InputError
            It is none of the three, or several, or vectors cannot be sent.
        """
        if self.like is None and self.unlike is not None:
            raise InputError("unlike: expected examples of like beside it")
        if sum(given is not None for given in (self.features, self.by_id, self.like)) != 1:
            raise InputError("expected exactly one of features, by_id and like")
        if self.features is not None:
            return {"query": vectors(self.features)}
        if self.by_id is not None:
            return {"query_id": plain_id(self.by_id)}
        return {"query_by": {"positive": _examples("like", self.like), "negative": _examples("unlike", self.unlike)}}


def search(
    root: str, query: Query, limit: int, offset: int, cursor: str | None, options: Mapping[str, Any]
) -> Call[Hits]:
    """One query."""
    body = {**query.body(), "limit": limit, **options}
    if offset:
        body["offset"] = offset
    if cursor is not None:
        body["cursor"] = cursor
    return Call("POST", f"{root}/search", _hits, to_json(body))


def groups(
    root: str, query: Query, group_by: str, group_size: int, limit: int, offset: int, options: Mapping[str, Any]
) -> Call[Groups]:
    """The best groups of one query."""
    body = {**query.body(), "limit": limit, "group_by": group_by, "group_size": group_size, **options}
    if offset:
        body["offset"] = offset
    return Call("POST", f"{root}/search", _groups, to_json(body))


def queries(given: Sequence[Vectors] | Vectors) -> list[dict[str, Sent]]:
    """Several queries as the service takes them, of (q, P) arrays by modality or of single queries.

    Raises
    ------
    InputError
        An array is not as it should be, or a query has no modality.
    """
    if not isinstance(given, Mapping):
        return [vectors(features, f"queries[{i}].") for i, features in enumerate(given)]
    features = Features(given)
    found = list(features.encoded(range(features.n)))
    for i, query in enumerate(found):
        if not query:
            raise InputError(f"queries[{i}]: expected features of one modality at least, got a row of NaN in each")
    return found


def batches(
    root: str, queries: Sequence[dict[str, Sent]], limit: int, limits: Limits, options: Mapping[str, Any]
) -> Iterator[Call[list[Hits]]]:
    """As many requests as the service's limits make of so many queries, in order."""
    looked_at = max(limit, 1)
    if options.get("rescore"):  # each query ranks as many anew
        times = options.get("oversampling") or _OVERSAMPLING
        looked_at = min(math.ceil((looked_at + 1) * times), limits.max_limit + 1)
    most = max(1, min(limits.max_batch_queries, limits.max_results // looked_at, limits.max_brackets // 4))
    if queries:  # those of a batch are about as long as each other
        longest = max(sum(len(name) + _size(value) + 8 for name, value in query.items()) for query in queries)
        most = min(most, max(1, (limits.max_body_bytes - len(to_json(options)) - 1024) // (longest + 8)))
    for start in range(0, len(queries), most):
        body = {"queries": queries[start : start + most], "limit": limit, **options}
        yield Call("POST", f"{root}/search", _lists_of_hits, to_json(body))


def _size(value: Sent) -> int:
    return len(value) if isinstance(value, str) else len(to_json(value))


def _examples(name: str, given: Sequence[str | int | Vectors] | None) -> list[str | dict[str, Sent]]:
    if isinstance(given, (str, bytes, int, Mapping)):
        raise InputError(f"{name}: expected a list of ids and features, got one of them")
    return [
        vectors(example, f"{name}[{i}].") if isinstance(example, Mapping) else plain_id(example)
        for i, example in enumerate(given or ())
    ]


def _hit_tuple(entries: Any) -> tuple[Hit, ...]:
    return tuple(make(Hit, entry) for entry in entries)


def _hits(data: Any) -> Hits:
    return Hits(_hit_tuple(data["results"]), data.get("next_cursor"), float(data["took_ms"]))


def _groups(data: Any) -> Groups:
    found = tuple(Group(entry["key"], _hit_tuple(entry["hits"])) for entry in data["results"])
    return Groups(found, float(data["took_ms"]))


def _lists_of_hits(data: Any) -> list[Hits]:
    return [Hits(_hit_tuple(entries), None, float(data["took_ms"])) for entries in data["results"]]
