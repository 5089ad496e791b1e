"""What `ccq bench scan` searches: codes of a trained model, and inputs that are hard for a scan that prunes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ccq_cli.points import points
from ccq_core import CCQ
from ccq_core.distances import DistanceTables, check_metric
from ccq_core.scan import scan
from ccq_core.table import CodeTable, TableView

HARD = ("equal", "sorted", "outlier", "few")
NAMES = ("points", *HARD)
_QUERIES = 256
_TURNS = 17  # so that up to 4096 queries from any of them on are consecutive


@dataclass(frozen=True)
class Input:
    """Codes, and look-up tables of queries.

    Attributes
    ----------
    view:
        What is searched.
    tables:
        Makes the tables of the next q queries for a metric.
    """

    view: TableView
    tables: Callable[[int, str], DistanceTables]


def make(name: str, m: int, n: int, norm: str = "byte") -> Input:
    """n rows of m codes and a norm byte: ``points``, which may have none, or something hard.

    - ``equal``: all distances are equal, and so the first rows are the best.
    - ``sorted``: each row is at least as near as the one before.
    - ``outlier``: one codeword, which no row uses, is far nearer than all others.
    - ``few``: four distinct bytes in each plane, so that thousands of rows are equally near.
    """
    return _of_points(m, n, norm) if name == "points" else _hard(name, m, n)


def random(m: int, n: int) -> Input:
    """n rows of m random codes and a norm byte, and one random query: what costs nothing to make."""
    return _hard("random", m, n)


def _of_points(m: int, n: int, norm: str) -> Input:
    """A model of two modalities and the codes of 200,000 pairs, as often as needed; new points as queries."""
    x = points(200_000, 3)
    data = {"image": x, "text": x[:, ::-1] + 0.1 * points(200_000, 4)}
    model = CCQ(bits=8 * m, norm=norm, iterations=3).fit({name: array[:20_000] for name, array in data.items()})
    latents = np.tile(model.project({"image": points(_QUERIES, 5)}), (_TURNS, 1))
    turns = count()

    def tables(q: int, metric: str) -> DistanceTables:
        first = next(turns) * q % _QUERIES
        some = latents[first : first + q]  # to pick queries takes no time: it is no part of a search
        return model.distance_tables_latent(some, metric=check_metric(metric))

    return Input(_view(model.encode(data), n), tables)


def _hard(name: str, m: int, n: int) -> Input:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (min(n, 1 << 20), m + 1), dtype=np.uint8)
    planes = rng.standard_normal((1, m + 1, 256)).astype(np.float32)
    planes[:, -1] = np.linspace(0.5, 1.5, 256)
    match name:
        case "equal":
            planes[:] = 1
        case "outlier":
            planes[0, 0, 7] = -1e6
            codes[codes[:, 0] == 7, 0] = 8
        case "few":
            codes %= 4
    first = DistanceTables("euclidean", planes, np.zeros(1))
    if name == "sorted":
        codes = codes[np.argsort(-scan(first, 0, codes), kind="stable")]
        codes = np.repeat(codes, -(-n // len(codes)), axis=0)

    def tables(q: int, metric: str) -> DistanceTables:
        return DistanceTables(check_metric(metric), np.repeat(planes, q, axis=0), np.zeros(q))

    return Input(_view(codes, n, shuffle=name != "sorted"), tables)


def _view(codes: NDArray[np.uint8], n: int, shuffle: bool = True) -> TableView:
    table = CodeTable(codes.shape[1])
    rng = np.random.default_rng(0)
    for lo in range(0, n, len(codes)):
        part = codes[rng.permutation(len(codes))] if shuffle else codes
        part = part[: n - lo]
        table.append(np.arange(lo, lo + len(part)), part)
    return table.view()
