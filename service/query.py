"""What a search looks for: the query of a request as points of the latent space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ccq_core.features import Float32
from service.encoders.named import Encoders
from service.encoders.raw import encode_raw, has_raw
from service.errors import CoreInputError, Fault, InvalidRequestError, UnknownItemError
from service.features import read_vectors
from service.mirror import Mirror
from service.places import Location, shorten
from service.schemas.search import SearchRequest
from service.store.interface import ItemRow, Snapshot
from service.tables import Coder, View

_NO_LENGTH = 1e-6  # rounding leaves about a tenth of it where nothing should be left

Example = str | Mapping[str, Any]


class Query(NamedTuple):
    """What a request searches for, as far as it can be told without the store.

    Attributes
    ----------
    places, examples:
        Ids of stored items, and features, with their places in the request.
    positives:
        How many examples, the first, the results are to be like; the others they are not to be like. None where each
        example is a query of its own.
    """

    places: Sequence[Location]
    examples: Sequence[Example]
    positives: int | None

    @classmethod
    def read(cls, request: SearchRequest) -> Self:
        """The query of a request, not spelled yet."""
        places, examples = zip(*_examples(request), strict=True)
        positives = None if request.query_by is None else len(request.query_by.positive)
        return cls(places, examples, positives)

    def has_raw(self, encoders: Encoders) -> bool:
        """Whether an encoder is needed for some of the examples."""
        return bool(encoders) and has_raw(filter(_is_spelled, self.examples), encoders)

    def encoded(self, encoders: Encoders) -> Self:
        """The query with features in the place of raw values; raises what `encode_raw` raises."""
        rows = [i for i, example in enumerate(self.examples) if _is_spelled(example)]
        given = [example for example in self.examples if _is_spelled(example)]
        made = dict(zip(rows, encode_raw(given, lambda row: self.places[rows[row]], encoders), strict=True))
        return self._replace(examples=[made.get(i, example) for i, example in enumerate(self.examples)])

    def resolve(
        self, spelled: Float32, collection: Mirror, view: View, snapshot: Snapshot
    ) -> tuple[Float32, tuple[int, ...]]:
        """Latent vectors (q, D) of the queries, and the ascending sequence numbers of the stored items among them.

        Parameters
        ----------
        spelled:
            What `spell` gave for it.

        Raises
        ------
        UnknownItemError
            An id that no item has.
        InvalidRequestError
            The examples leave no direction.
        """
        stored = {
            i: _stored_item(example, self.places[i], collection, snapshot)
            for i, example in enumerate(self.examples)
            if isinstance(example, str)
        }
        points = spelled
        if stored:
            others = iter(spelled)
            rows = range(len(self.examples))
            points = np.array([_latent_of(stored[i], view) if i in stored else next(others) for i in rows])
        if self.positives is not None:
            points = _difference(points, self.positives)
        return points, tuple(sorted({item.seq for item in stored.values()}))


def _examples(request: SearchRequest) -> list[tuple[Location, Example]]:
    if request.query is not None:
        return [(("query",), request.query)]
    if request.query_id is not None:
        return [(("query_id",), request.query_id)]
    if request.query_by is not None:
        sides = (("positive", request.query_by.positive), ("negative", request.query_by.negative))
        return [(("query_by", side, i), example) for side, given in sides for i, example in enumerate(given)]
    return [(("queries", i), example) for i, example in enumerate(request.queries or [])]


def spell(queries: Sequence[Query], coder: Coder) -> list[Float32 | CoreInputError]:
    """For each query latent vectors (n, D) of its examples that are features, or what is wrong with these.

    All are worked out together, and each is what it would be alone. `coder`: that of the view that is searched.
    """
    spelled = [
        [(place, example) for place, example in zip(query.places, query.examples, strict=True) if _is_spelled(example)]
        for query in queries
    ]
    try:
        points = _latents([found for several in spelled for found in several], coder)
    except CoreInputError as error:
        return [error] if len(queries) == 1 else [result for query in queries for result in spell([query], coder)]
    ends = accumulate(map(len, spelled))
    return [points[end - len(several) : end] for end, several in zip(ends, spelled, strict=True)]


def _is_spelled(example: Example) -> TypeGuard[Mapping[str, Any]]:
    return not isinstance(example, str)


def _latents(spelled: Sequence[tuple[Location, Mapping[str, Any]]], coder: Coder) -> Float32:
    if not spelled:
        return np.empty((0, 0), dtype=np.float32)
    vectors = read_vectors(
        [example for _, example in spelled],
        lambda i: spelled[i][0],
        coder.model,
        coder.record.model,
    )
    with vectors.faults_named(np.arange(len(spelled))):
        return coder.model.project(vectors.features, alone=True)


def _stored_item(item_id: str, place: Location, collection: Mirror, snapshot: Snapshot) -> ItemRow:
    item = snapshot.item(item_id)
    if item is None:
        raise UnknownItemError(item_id, collection.record.name, [Fault.at(place, f"no item {shorten(item_id)}")])
    return item


def _latent_of(item: ItemRow, view: View) -> Float32:
    """Latent vector (D,) of a stored item: of its `pair` codes, else of its only ones."""
    *_, last = view.codes(item.seq).values()  # `pair` is the last database, and an item without it is in one only
    latent: Float32 = view.coder.model.decode(last[None])[0]
    return latent


def _difference(points: Float32, positives: int) -> Float32:
    """The mean direction (1, D) of the first points, minus that of the others."""
    exact = points.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    units = np.divide(exact, lengths, out=np.zeros_like(exact), where=lengths > 0)
    difference: NDArray[np.float64] = units[:positives].mean(axis=0, keepdims=True)
    if positives < len(units):
        difference -= units[positives:].mean(axis=0)
    if np.linalg.norm(difference) < _NO_LENGTH:
        why = "they cancel each other out" if len(units) > 1 else "the model maps that example to nothing"
        reason = f"positive and negative examples leave no direction to search in: {why}"
        raise InvalidRequestError.from_faults([Fault.at(("query_by",), reason)])
    return difference.astype(np.float32)
