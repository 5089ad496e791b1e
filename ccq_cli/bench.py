"""`ccq bench`: how fast the kernels are here, beside a plain read of the same bytes and, if installed, Faiss."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from threadpoolctl import threadpool_limits

from ccq_cli import peers
from ccq_cli.console import out
from ccq_core import CCQ, _native, simd, training
from ccq_core.distances import check_metric
from ccq_core.features import FeatureSet
from ccq_core.quantizer import EFFORTS, AdditiveQuantizer, Effort
from ccq_core.table import CodeTable, TableView

DIM = 64
_RUNS = 7
_EFFORTS = {
    **{f"effort {i}": effort for i, effort in enumerate(EFFORTS)},
    "ILS 4": Effort(rounds=4),
    "ILS 16": Effort(rounds=16),
    "beam 5": Effort(beam=5, sweeps=0),
    "beam 16": Effort(beam=16, sweeps=0),
}


@click.group("bench")
def command() -> None:
    """Measure scanning, encoding and training on this machine, one thread unless said otherwise; medians."""


@command.command("scan")
@click.option("--n", "sizes", multiple=True, type=int, default=(1_000_000,), show_default=True, help="Items.")
@click.option("--m", "books", multiple=True, type=int, default=(4, 8), show_default=True, help="Codebooks.")
@click.option("--k", "ks", multiple=True, type=int, default=(10,), show_default=True, help="Results.")
@click.option("--queries", multiple=True, type=int, default=(1, 32), show_default=True, help="Queries per search.")
@click.option("--threads", multiple=True, type=int, default=(1,), show_default=True)
@click.option("--metric", "metrics", multiple=True, default=("euclidean", "cosine"), show_default=True)
@click.option("--level", "levels", multiple=True, help="SIMD levels; all that this CPU has by default.")
@click.option("--plain", is_flag=True, help="Also look every row up in the exact tables.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def scan(
    sizes: Sequence[int],
    books: Sequence[int],
    ks: Sequence[int],
    queries: Sequence[int],
    threads: Sequence[int],
    metrics: Sequence[str],
    levels: Sequence[str],
    plain: bool,
    as_json: bool,
) -> None:
    """Time exact searches, tables included, in ns per item and query."""
    levels = levels or simd.levels()[:-1]
    rows: list[dict[str, Any]] = []
    for m in books:
        model, codes = _codes(m)
        for n in sizes:
            table = _table(codes, n)
            read = _time(partial(_read, table.view())) / n
            for q in queries:
                latent = np.random.default_rng(q).standard_normal((q, model.codebooks_.shape[2])).astype(np.float32)
                faiss = peers.scan(m, n, q, ks[0], DIM)
                for metric, k, t, level in ((a, b, c, d) for a in metrics for b in ks for c in threads for d in levels):
                    with _forced(level, t):
                        seconds = _time(partial(_search, model, table.view(), latent, metric, k))
                    row: dict[str, Any] = {
                        "level": level, "n": n, "m": m, "k": k, "queries": q, "threads": t, "metric": metric,
                        "ns_per_item": seconds / n / q * 1e9, "read_ns_per_item": read * 1e9, "faiss": faiss,
                    }  # fmt: skip
                    if plain:
                        row["plain_ns_per_item"] = _plain(model, table.view(), latent, metric, k, level) / n / q * 1e9
                    rows.append(row)
    if as_json:
        click.echo(json.dumps(rows))
        return
    names = list(rows[0]["faiss"] or {})
    columns = ["level", "items", "M", "k", "queries", "threads", "metric", "ns", "of a read"]
    shown = Table(*columns, *[f"{name}: times" for name in names], title="ns per item and query")
    for row in rows:
        cells = [row[key] for key in ("level", "n", "m", "k", "queries", "threads", "metric")]
        ratio = row["ns_per_item"] / row["read_ns_per_item"]
        peers_ratio = [f"{row['faiss'][name] / row['ns_per_item']:.1f}" for name in names]
        shown.add_row(*map(str, cells), f"{row['ns_per_item']:.4f}", f"{ratio:.2f}", *peers_ratio)
    out.print(shown)


@command.command("encode")
@click.option("--n", default=100_000, show_default=True, help="Points.")
@click.option("--m", "books", multiple=True, type=int, default=(4, 8), show_default=True, help="Codebooks.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def encode(n: int, books: Sequence[int], as_json: bool) -> None:
    """Points a second and relative error, on the codebooks of Faiss' LSQ and RQ where it is installed, else on ours."""
    rows: list[dict[str, Any]] = []
    x = points(n, 2)
    variance = float(np.square(x - x.mean(axis=0)).sum())
    for m in books:
        with _one_thread():
            for owner, codebooks, rivals in peers.encoders(m, points(20_000, 1)) or [
                ("ours", _train(points(20_000, 1), m, 12)[0], {})
            ]:
                quantizer = AdditiveQuantizer(codebooks)
                runs: dict[str, Callable[[], Any]] = {f"faiss {name}": partial(f, x) for name, f in rivals.items()}
                runs.update({name: partial(quantizer.encode, x, effort) for name, effort in _EFFORTS.items()})
                for name, run in runs.items():
                    seconds = _time(run, runs=3)
                    error = float(np.square(x - quantizer.decode(run())).sum()) / variance
                    rows.append(
                        {"m": m, "codebooks": owner, "encoder": name, "points_per_s": n / seconds, "error": error}
                    )
    _print(rows, as_json, "points a second, one thread")


@command.command("train")
@click.option("--n", "sizes", multiple=True, type=int, default=(10_000, 100_000), show_default=True, help="Points.")
@click.option("--m", "books", multiple=True, type=int, default=(4, 8), show_default=True, help="Codebooks.")
@click.option("--iterations", default=25, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def train(sizes: Sequence[int], books: Sequence[int], iterations: int, as_json: bool) -> None:
    """Seconds and relative error of training codebooks, beside Faiss' LSQ trainer where it is installed."""
    rows: list[dict[str, Any]] = []
    for m in books:
        for n in sizes:
            x = points(n, 1)
            variance = float(np.square(x - x.mean(axis=0)).sum())
            with _one_thread():
                runs: dict[str, Callable[[], Any]] = {"ours": partial(_train, x, m, iterations)}
                runs.update({f"faiss {name}": partial(f, x) for name, f in (peers.trainers(m) or {}).items()})
                for name, run in runs.items():
                    start = time.perf_counter()
                    codebooks, codes = run()
                    seconds = time.perf_counter() - start
                    error = float(np.square(x - AdditiveQuantizer(codebooks).decode(codes)).sum()) / variance
                    rows.append({"m": m, "n": n, "trainer": name, "seconds": seconds, "error": error})
    _print(rows, as_json, "training, one thread")


def points(n: int, seed: int) -> NDArray[np.float32]:
    """(n, 64) float32: 200 clusters of one shared, uneven shape."""
    fixed, rng = np.random.default_rng(99), np.random.default_rng(seed)
    centres = fixed.standard_normal((200, DIM))
    shape = fixed.standard_normal((DIM, DIM)) / np.sqrt(DIM) * np.linspace(1.6, 0.2, DIM)[:, None]
    x = 0.7 * centres[rng.integers(0, 200, n)] + rng.standard_normal((n, DIM)) @ shape
    return np.asarray(x, dtype=np.float32)


def _train(x: NDArray[np.float32], m: int, iterations: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Codebooks (M, 256, 64) and codes (n, M) of points, by the training of `CCQ.fit`: one modality, mapped to itself.

    The mapping is square and orthonormal, so codebooks turned back have the error that they have in the latent space.
    """
    trained = training.train(
        FeatureSet({"x": x}, {"x": np.ones(len(x), dtype=bool)}, len(x)),
        m=m,
        dim=DIM,
        weights={"x": 1.0},
        effort=EFFORTS[2],
        iterations=iterations,
        tolerance=0.0,
        ridge=1e-4,
        start="identity",
        rng=np.random.default_rng(0),
    )
    codebooks = np.ascontiguousarray(trained.codebooks @ trained.mappings["x"].T)
    return codebooks, AdditiveQuantizer(codebooks).encode(x, EFFORTS[3])


def _codes(m: int) -> tuple[CCQ, NDArray[np.uint8]]:
    """A model of two modalities and the codes of its 200,000 training pairs."""
    x = points(200_000, 3)
    data = {"image": x, "text": x[:, ::-1] + 0.1 * points(200_000, 4)}
    model = CCQ(bits=8 * m, iterations=3).fit({name: array[:20_000] for name, array in data.items()})
    return model, model.encode(data)


def _table(codes: NDArray[np.uint8], n: int) -> CodeTable:
    table = CodeTable(codes.shape[1])
    rng = np.random.default_rng(0)
    for lo in range(0, n, len(codes)):
        part = codes[rng.permutation(len(codes))[: n - lo]]
        table.append(np.arange(lo, lo + len(part)), part)
    return table


def _search(model: CCQ, view: TableView, latent: NDArray[np.float32], metric: str, k: int) -> None:
    view.search(model.distance_tables_latent(latent, metric=check_metric(metric)), k)


def _plain(model: CCQ, view: TableView, latent: NDArray[np.float32], metric: str, k: int, level: str) -> float:
    tables = model.distance_tables_latent(latent, metric=check_metric(metric))
    parts = [(b.codes, b.n, b.mask) for b in view.blocks]
    return _time(
        lambda: _native.search(parts, tables.planes(), None, metric == "cosine", k, view.rows, 1, level, plain=True)
    )


def _read(view: TableView) -> None:
    for block in view.blocks:
        _native.read(block.codes, simd.levels()[0])


def _time(run: Callable[[], Any], runs: int = _RUNS) -> float:
    """Median seconds, after one run that does not count."""
    run()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


@contextmanager
def _forced(level: str, threads: int) -> Iterator[None]:
    before = simd.get_level(), simd.get_threads()
    simd.set_level(level)
    simd.set_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        simd.set_level(before[0])
        simd.set_threads(before[1])


@contextmanager
def _one_thread() -> Iterator[None]:
    with _forced(simd.get_level(), 1):
        yield


def _print(rows: list[dict[str, Any]], as_json: bool, title: str) -> None:
    if as_json:
        click.echo(json.dumps(rows))
        return
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(
            *[
                f"{v:,.0f}" if isinstance(v, float) and v >= 100 else f"{v:.4f}" if isinstance(v, float) else str(v)
                for v in row.values()
            ]
        )
    out.print(table)
