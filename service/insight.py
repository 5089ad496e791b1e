"""What is in a collection, to be looked at: how its codewords are used, and a map of where its items lie."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.quantizer import K
from service import deadline
from service.collection import Collection
from service.payloads import load_payload
from service.schemas.insight import MAX_LABEL
from service.store.interface import Snapshot
from service.tables import View
from service.values import scalars_at
from service.workers import Workers

_KEPT = 16

Reply = dict[str, Any]


class Insight:
    """Works out one of these at one time, apart from searches, and keeps the last ones for as long as they hold."""

    def __init__(self) -> None:
        self._worker = Workers(1)
        self._known: OrderedDict[tuple[Any, ...], Reply] = OrderedDict()

    async def usage(self, collection: Collection) -> Reply:
        """How often codewords are used, as `Usage`; RequestTimeoutError once the request is over."""

        def work() -> Reply:
            view = collection.view
            return self._find(view, ("usage",), lambda: usage(view))

        return await self._worker.run(work)

    async def map(self, collection: Collection, sample: int, label: str | None) -> Reply:
        """Where items lie, as `LatentMap`.

        Parameters
        ----------
        sample:
            Most points.
        label:
            Key path of a payload, whose value is shown with each point.

        Raises
        ------
        UnknownCollectionError, UnavailableError
            As from `Collection.read`.
        """

        def work() -> Reply:
            with collection.read() as (view, snapshot):
                return self._find(view, ("map", sample, label), lambda: latent_map(view, snapshot, sample, label))

        return await self._worker.run(work)

    def _find(self, view: View, what: tuple[Any, ...], work: Callable[[], Reply]) -> Reply:
        record = view.coder.record
        key = (record.number, record.generation, view.version, *what)
        found = self._known[key] if key in self._known else work()
        self._known[key] = found
        self._known.move_to_end(key)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found


def usage(view: View) -> Reply:
    """How often codewords are used at one moment, as `Usage`."""
    counts = np.zeros((view.coder.layout.width, K), np.int64)
    for table in view.tables.values():
        for part in table.counts():
            deadline.check()
            counts += part
    books = len(view.coder.model.codebooks_)  # the byte behind them, if there is one, is the norm
    return {**_of(view), "codebooks": counts[:books].tolist()}


def latent_map(view: View, snapshot: Snapshot, sample: int, label: str | None) -> Reply:
    """Where a sample of the items lies at one moment, as `LatentMap`. The databases have their shares of it."""
    seqs, names, codes = [], [], []
    for name, table in view.tables.items():
        share = -(-sample * table.rows // max(view.rows, 1)) if view.rows > sample else table.rows
        found, rows = table.sample(share)
        seqs += found.tolist()
        names += [name] * len(found)
        codes.append(rows)
    kept = np.unique(np.linspace(0, len(seqs) - 1, min(sample, len(seqs))).round().astype(np.int64)).tolist()
    texts = {seq: (item_id, data) for seq, item_id, data in snapshot.texts({seqs[i] for i in kept}, label is not None)}
    latent = view.coder.model.decode(np.concatenate(codes)[kept]).astype(np.float64)
    if view.coder.model.metric == "cosine":  # to which lengths do not count
        lengths = np.linalg.norm(latent, axis=1, keepdims=True)
        latent = np.divide(latent, lengths, out=np.zeros_like(latent), where=lengths > 0)
    places, explained = principal_plane(latent)
    steps = None if label is None else label.split(".")
    points = [
        {"id": texts[seqs[i]][0], "database": names[i], "x": x, "y": y, "label": _label(*texts[seqs[i]], steps)}
        for i, (x, y) in zip(kept, places.round(5).tolist(), strict=True)
    ]
    return {**_of(view), "explained": explained.round(5).tolist(), "points": points}


def principal_plane(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points in the two directions in which they are spread most.

    Parameters
    ----------
    points:
        (n, D).

    Returns
    -------
    Places (n, 2), and the share of the variance (2,) along each direction; zeros where there is no such direction.
    Directions point so that their largest component is positive.
    """
    places, explained = np.zeros((len(points), 2)), np.zeros(2)
    if not len(points):
        return places, explained
    centred = points - points.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, ::-1][:, :2]
    n = directions.shape[1]
    directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(n)])
    places[:, :n] = centred @ directions
    total = variances.clip(0).sum()
    if total > 0:
        explained[:n] = variances[::-1][:2].clip(0) / total
    return places, explained


def _of(view: View) -> Reply:
    return {"model": view.coder.record.model, "version": view.version, "rows": view.rows}


def _label(item_id: str, payload: bytes | None, steps: Sequence[str] | None) -> str | None:
    if steps is None:
        return None
    values = scalars_at(load_payload(item_id, payload), steps).values()
    shown = next((value for value in values if type(value) in (str, int, float)), None)
    return None if shown is None else str(shown)[:MAX_LABEL]
