"""`ccq bench`: how fast the kernels are here, beside a plain read of the same bytes and, if installed, Faiss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from threadpoolctl import threadpool_limits

from ccq_cli import inputs, peers
from ccq_cli.console import out
from ccq_cli.points import DIM, points
from ccq_cli.shown import local_json_option, print_json
from ccq_core import _native, simd, training
from ccq_core.distances import METRICS
from ccq_core.features import FeatureSet
from ccq_core.model import NORMS
from ccq_core.quantizer import EFFORTS, AdditiveQuantizer, Effort
from ccq_core.source import InMemory

_RUNS = 7
_SECONDS = 0.3
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
@click.option(
    "--n", "sizes", multiple=True, type=click.IntRange(1), default=(1_000_000,), show_default=True, help="Items."
)
@click.option(
    "--m", "books", multiple=True, type=click.IntRange(1, 16), default=(4, 8), show_default=True, help="Codebooks."
)
@click.option("--k", "ks", multiple=True, type=click.IntRange(1), default=(10,), show_default=True, help="Results.")
@click.option(
    "--queries", multiple=True, type=click.IntRange(1), default=(1, 32), show_default=True, help="Queries per search."
)
@click.option("--threads", multiple=True, type=click.IntRange(1), default=(1,), show_default=True)
@click.option(
    "--metric", "metrics", multiple=True, type=click.Choice(METRICS), default=("euclidean", "cosine"), show_default=True
)
@click.option("--level", "levels", multiple=True, help="SIMD levels; all that this CPU has by default.")
@click.option(
    "--input",
    "names",
    multiple=True,
    type=click.Choice(inputs.NAMES),
    default=inputs.NAMES[:1],
    show_default=True,
    help="Codes of a trained model, or inputs that are hard for a scan that prunes.",
)
@click.option(
    "--norm", type=click.Choice(NORMS), default="byte", show_default=True, help="Of `points`; `none`: cosine only."
)
@click.option("--plain", is_flag=True, help="Also look every row up in the exact tables.")
@local_json_option
def scan(
    sizes: Sequence[int],
    books: Sequence[int],
    ks: Sequence[int],
    queries: Sequence[int],
    threads: Sequence[int],
    metrics: Sequence[str],
    levels: Sequence[str],
    names: tuple[str, ...],
    norm: str,
    plain: bool,
    as_json: bool,
) -> None:
    """Time exact searches, tables included, in ns per item and query."""
    levels = levels or simd.levels()[:-1]
    if norm == "none":
        metrics = ("cosine",)
        if plain or names != inputs.NAMES[:1]:
            raise click.UsageError("--norm none is for points, and has no --plain")
    rows: list[dict[str, Any]] = []
    for m, n, name in product(books, sizes, names):
        given = inputs.make(name, m, n, norm)
        read = _time(partial(_native.read, given.view.everything.native, simd.levels()[0])) / n
        for q, k in product(queries, ks):
            faiss = peers.scan(m, n, q, k, DIM)
            for metric, t, level in product(metrics, threads, levels):
                with _forced(level, t):
                    seconds = _time(partial(_search, given, q, metric, k))
                row: dict[str, Any] = {
                    "level": level, "n": n, "m": m, "k": k, "queries": q, "threads": t, "metric": metric,
                    "ns_per_item": seconds / n / q * 1e9, "read_ns_per_item": read * 1e9, "faiss": faiss,
                }  # fmt: skip
                if plain:
                    with _forced(level, 1):
                        row["plain_ns_per_item"] = _time(partial(_plain, given, q, metric, k, level)) / n / q * 1e9
                if names != inputs.NAMES[:1]:
                    row["input"] = name
                if norm != "byte":
                    row["norm"] = norm
                rows.append(row)
    if as_json:
        print_json(rows)
        return
    rivals = list(rows[0]["faiss"] or {})
    keys = [key for key in ("input", "level", "n", "m", "k", "queries", "threads", "metric") if key in rows[0]]
    out.print("ns per item and query, times a plain read (and the plain float path), and times faster than Faiss")
    lines = [[*keys, "ns", "/read", *["/plain"] * plain, *rivals]]
    for row in rows:
        ns = row["ns_per_item"]
        ratios = [ns / row[key] for key in ("read_ns_per_item", "plain_ns_per_item") if key in row]
        ratios += [row["faiss"][name] / ns for name in rivals]
        lines.append([*(str(row[key]) for key in keys), f"{ns:.4f}", *(f"{ratio:.2f}" for ratio in ratios)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        out.print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


@command.command("encode")
@click.option("--n", type=click.IntRange(1), default=100_000, show_default=True, help="Points.")
@click.option(
    "--m", "books", multiple=True, type=click.IntRange(1, 16), default=(4, 8), show_default=True, help="Codebooks."
)
@local_json_option
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
@click.option(
    "--n", "sizes", multiple=True, type=click.IntRange(1), default=(10_000, 100_000), show_default=True, help="Points."
)
@click.option(
    "--m", "books", multiple=True, type=click.IntRange(1, 16), default=(4, 8), show_default=True, help="Codebooks."
)
@click.option("--iterations", type=click.IntRange(1), default=25, show_default=True)
@local_json_option
def train(sizes: Sequence[int], books: Sequence[int], iterations: int, as_json: bool) -> None:
    """Seconds and relative error of training codebooks, beside Faiss' LSQ trainer where it is installed."""
    rows: list[dict[str, Any]] = []
    for m in books:
        for n in sizes:
            x = points(n, 1)
            variance = float(np.square(x - x.mean(axis=0)).sum())
            with _one_thread():
                runs: dict[str, Callable[[], Any]] = {"ours": partial(_train, x, m, iterations)}
                runs.update({f"faiss {name}": partial(f, x) for name, f in peers.trainers(m).items()})
                for name, run in runs.items():
                    start = time.perf_counter()
                    codebooks, codes = run()
                    seconds = time.perf_counter() - start
                    error = float(np.square(x - AdditiveQuantizer(codebooks).decode(codes)).sum()) / variance
                    rows.append({"m": m, "n": n, "trainer": name, "seconds": seconds, "error": error})
    _print(rows, as_json, "training, one thread")


def _train(x: NDArray[np.float32], m: int, iterations: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Codebooks (M, 256, 64) and codes (n, M) of points, by the training of `CCQ.fit`: one modality, mapped to itself.

    The mapping is square and orthonormal, so codebooks turned back have the error that they have in the latent space.
    """
    features = FeatureSet({"x": x}, {"x": np.ones(len(x), dtype=bool)}, len(x))
    trained = training.train(
        training.Objects(InMemory(features), {"x": 1.0}),
        training.Room(np.zeros((len(x), m), dtype=np.uint8), np.zeros(len(x), dtype=np.float32)),
        dim=DIM,
        effort=EFFORTS[2],
        iterations=iterations,
        tolerance=0.0,
        ridge=1e-4,
        solver="cholesky",
        start="identity",
        rng=np.random.default_rng(0),
    )
    codebooks = np.ascontiguousarray(trained.codebooks @ trained.mappings["x"].T)
    return codebooks, AdditiveQuantizer(codebooks).encode(x, EFFORTS[3])


def _search(given: inputs.Input, queries: int, metric: str, k: int) -> None:
    given.view.search(given.tables(queries, metric), k)


def _plain(given: inputs.Input, queries: int, metric: str, k: int, level: str) -> None:
    """The same search by exact tables alone."""
    planes = given.tables(queries, metric).planes
    _native.search(given.view.everything.native, planes, metric == "cosine", k, 1, level, plain=True)


def _time(run: Callable[[], Any], runs: int = _RUNS) -> float:
    """Median seconds, after one run that does not count; of more runs where they are short."""
    run()
    seconds: list[float] = []
    while len(seconds) < runs or (sum(seconds) < _SECONDS and len(seconds) < 100):
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
        print_json(rows)
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
