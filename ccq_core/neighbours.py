"""How near search comes to what exact search by the features themselves finds, within one modality."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.distances import Metric
from ccq_core.features import FeatureSet
from ccq_core.model import CCQ
from ccq_core.partners import float_keys
from ccq_core.scan import Keys, scan

K_NEAREST = 10
OVERSAMPLING = (4, 30)  # the service's default, and much
_MOST_QUERIES = 1000
_QUERIES = 256  # that are looked at together
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Neighbours:
    """How many of the objects whose features have the largest cosines with those of an object are found by it.

    Attributes
    ----------
    modality:
        Of queries and items.
    objects:
        How many objects have it: the items, of which some are the queries, each of them sought among the others.
    codes:
        Recall@10: the share of the 10 nearest by the cosine of the features that is among the first 10 by codes.
    rescored:
        By oversampling: the same where the first are ranked anew by their latent vectors, as `rescore` does.
    floats:
        The same by all latent vectors: what `rescore` comes to with ever more oversampling.
    """

    modality: str
    objects: int
    codes: float
    rescored: dict[int, float]
    floats: float

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "modality": self.modality,
            "objects": self.objects,
            "codes": self.codes,
            **{f"rescored_{times}": share for times, share in self.rescored.items()},
            "floats": self.floats,
        }


def find_neighbours(
    model: CCQ,
    features: FeatureSet,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    *,
    metric: Metric | None = None,
) -> Iterator[Neighbours]:
    """Compare search within each modality with exact search by the cosine of the features, as vector databases do it.

    A modality that fewer than 11 objects have is left out. At most 1,000 objects are queries, evenly spread.

    Parameters
    ----------
    model:
        Fitted, on other objects if its quality on new ones is to be told.
    features:
        Objects in its modalities.
    progress:
        Called now and then with how many queries are done, and of all.
    metric:
        Ranking by codes and latent vectors; the model's own by default.
    """
    having = {name: array[features.present[name]] for name, array in features.arrays.items()}
    having = {name: x for name, x in having.items() if len(x) > K_NEAREST}
    queries = {name: np.unique(np.linspace(0, len(x) - 1, _MOST_QUERIES).astype(np.intp)) for name, x in having.items()}
    total, done = sum(map(len, queries.values())), 0
    for name, x in having.items():
        z = model.project({name: x})
        codes = model.encode_latent(z)
        shares = []
        for lo in range(0, len(queries[name]), _QUERIES):
            rows = queries[name][lo : lo + _QUERIES]
            tables = model.distance_tables_latent(z[rows], metric=metric)
            by_codes = np.stack([scan(tables, query, codes) for query in range(len(tables))])
            by_floats = float_keys(z[rows], z, metric or model.metric)
            shares.append(_shares(rows, float_keys(x[rows], x, "cosine"), by_codes, by_floats))
            done += len(rows)
            progress(done, total)
        by_codes_, *rescored, floats = np.concatenate(shares, axis=1).mean(axis=1).tolist()
        yield Neighbours(name, len(x), by_codes_, dict(zip(OVERSAMPLING, rescored, strict=True)), floats)


def _shares(rows: Rows, wanted: Keys, by_codes: Keys, by_floats: Keys) -> NDArray[np.float64]:
    """Recall (2 + oversamplings, q) of each of the queries `rows`; keys (q, n), lower is nearer."""
    for keys in (wanted, by_codes, by_floats):
        keys[np.arange(len(rows)), rows] = np.inf  # itself
    nearest = _first(wanted, K_NEAREST)
    found = [_first(by_codes, K_NEAREST)]
    for times in OVERSAMPLING:
        some = _first(by_codes, math.ceil((K_NEAREST + 1) * times))
        order = np.argsort(np.take_along_axis(by_floats, some, axis=1), axis=1, kind="stable")[:, :K_NEAREST]
        found.append(np.take_along_axis(some, order, axis=1))
    found.append(_first(by_floats, K_NEAREST))
    return np.stack([(nearest[:, :, None] == one[:, None]).any(axis=2).mean(axis=1) for one in found])


def _first(keys: Keys, k: int) -> Rows:
    """The k first (q, k) by keys (q, n), ties by row; all but the query itself where there are fewer."""
    k = min(k, keys.shape[1] - 1)
    return np.argsort(keys, axis=1, kind="stable")[:, :k]
