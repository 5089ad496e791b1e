"""Figures from the CSV files, in the form of the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, pstdev

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.paper import binarization, curves, search_time, semi, sensitivity, table, training
from benchmarks.paper.data import CROSS, TASKS, WIKI, shown
from benchmarks.paper.reference import OURS, UNSUPERVISED, read_wiki
from benchmarks.paper.results import Row, grouped, read_rows
from benchmarks.paper.style import COLUMN, LOOKS, Look, in_order, legend, look, new_figure, save, styled

Points = Sequence[tuple[float, Sequence[float]]]


def draw_all(folder: Path) -> dict[str, Path]:
    """Draw every figure whose data are in `folder`: name to SVG file; a PNG lies beside each."""
    drawings: tuple[tuple[str, Callable[[list[Row], Path, str], Path], bool], ...] = (
        (table.NAME, draw_map, True),
        (curves.NAME, draw_curves, True),
        (binarization.NAME, draw_binarization, True),
        (semi.NAME, draw_semi, False),
        (sensitivity.NAME, draw_lambda, False),
        (search_time.NAME, draw_search_time, False),
        (training.NAME, draw_training, False),
    )
    made: dict[str, Path] = {}
    for name, draw, by_dataset in drawings:
        rows = read_rows(folder / f"{name}.csv")
        for dataset in dict.fromkeys(row["dataset"] if by_dataset else "" for row in rows):
            label = f"{name}-{dataset.lower()}" if dataset else name
            with styled():
                made[label] = draw([row for row in rows if not dataset or row["dataset"] == dataset], folder, label)
    return made


def draw_map(rows: list[Row], folder: Path, name: str) -> Path:
    """MAP@50 against code length, a panel for each task, with the paper's own CCQ on Wiki."""
    figure, axes = new_figure(2, 3, sharex=True)
    scores = grouped(rows, "task", "method", "bits")
    published = read_wiki() if rows[0]["dataset"] == WIKI else {}
    bits = sorted({int(row["bits"]) for row in rows})
    for panel, task in zip(axes, TASKS, strict=True):
        panel.set_title(shown(task.name))
        theirs = [(b, published[cell]) for b in bits if (cell := (task.name, OURS, b)) in published]
        if theirs:
            published_look = look("CCQ, as published")
            panel.plot(*zip(*theirs, strict=True), label="CCQ, as published", **published_look.line_kwargs())
        for method in _methods(rows):
            points = [(float(b), scores[key]) for b in bits if (key := (task.name, method, str(b))) in scores]
            _line(panel, points, look(method), method)
        panel.set_xscale("log", base=2)
        panel.set_xticks(bits, [str(b) for b in bits])
    for panel in axes[3:]:
        panel.set_xlabel("bits")
    for panel in axes[::3]:
        panel.set_ylabel("MAP@50")
    legend(figure, axes)
    return save(figure, folder, name)


def draw_curves(rows: list[Row], folder: Path, name: str) -> Path:
    """Precision-recall above, precision@R below."""
    figure, axes = new_figure(2, 4)
    values = grouped(rows, "curve", "task", "bits", "method", "x")
    columns = [(task, bits) for task in CROSS for bits in curves.BITS]
    for at, curve in enumerate((curves.RECALL, curves.TOP)):
        for panel, (task, bits) in zip(axes[4 * at : 4 * at + 4], columns, strict=True):
            panel.set_title(f"{shown(task)} @ {bits} bits")
            panel.set_xlabel("recall" if curve == curves.RECALL else "R")
            for method in _methods(rows):
                points = [
                    (float(key[4]), found)
                    for key, found in values.items()
                    if key[:4] == (curve, task, str(bits), method)
                ]
                _line(panel, points, look(method), method, every=4 if curve == curves.RECALL else 5)
            panel.set_ylim(bottom=0)
        axes[4 * at].set_ylabel("precision")
    legend(figure, axes)
    return save(figure, folder, name)


def draw_binarization(rows: list[Row], folder: Path, name: str) -> Path:
    """MAP by continuous vectors and by codes, two bars for each method."""
    tasks = [task for task in TASKS if len(task.database) == 1]
    figure, axes = new_figure(1, len(tasks), height=1.9)
    scores = grouped(rows, "task", "method", "vectors")
    names = _methods(rows)
    for panel, task in zip(axes, tasks, strict=True):
        for at, method in enumerate(names):
            color = look(method).color
            for vectors, shift in ((binarization.CONTINUOUS, -0.2), (binarization.CODES, 0.2)):
                found = scores.get((task.name, method, vectors))
                if found:
                    coded = vectors == binarization.CODES
                    panel.bar(
                        at + shift,
                        fmean(found),
                        0.38,
                        color=color if coded else "white",
                        edgecolor=color,
                        linewidth=0.7,
                        hatch=None if coded else "////",
                    )
        panel.set_title(shown(task.name))
        panel.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
        panel.grid(visible=False, axis="x")
        panel.set_xlim(-0.6, len(names) - 0.4)
    axes[0].set_ylabel(f"MAP@50, {binarization.BITS} bits")
    axes[0].bar([0], [0], color="white", edgecolor="0.3", hatch="////", linewidth=0.7, label="continuous vectors")
    axes[0].bar([0], [0], color="0.3", edgecolor="0.3", linewidth=0.7, label="codes")
    legend(figure, axes)
    return save(figure, folder, name)


def draw_semi(rows: list[Row], folder: Path, name: str) -> Path:
    """MAP against the number of pairs: solid with unpaired objects, dashed without."""
    figure, axes = new_figure(2, 3, sharex=True)
    scores = grouped(rows, "task", "method", "unpaired", "pairs")
    pairs = sorted({int(row["pairs"]) for row in rows})
    for panel, task in zip(axes, TASKS, strict=True):
        panel.set_title(shown(task.name))
        for method in _methods(rows):
            for unpaired in (str(semi.UNPAIRED), "0"):
                points = [
                    (float(n), scores[key]) for n in pairs if (key := (task.name, method, unpaired, str(n))) in scores
                ]
                seen = Look(look(method).color, look(method).marker, "--" if unpaired == "0" else "-")
                label = f"{method}, {'pairs only' if unpaired == '0' else 'pairs and unpaired objects'}"
                _line(panel, points, seen, label)
        panel.set_xscale("log", base=2)
        panel.set_xticks(pairs, [f"{n:,}" for n in pairs])
    for panel in axes[3:]:
        panel.set_xlabel("pairs")
    for panel in axes[::3]:
        panel.set_ylabel(f"MAP@50, {semi.BITS} bits")
    legend(figure, axes, columns=2)
    return save(figure, folder, name)


def draw_lambda(rows: list[Row], folder: Path, name: str) -> Path:
    """MAP against lambda, beside the best unsupervised rival where `map.csv` has one."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    panels = [(dataset, task) for dataset in datasets for task in CROSS]
    figure, axes = new_figure(1, len(panels))
    scores = grouped(rows, "dataset", "task", "method", "lambda")
    rivals = grouped(
        (row for row in read_rows(folder / f"{table.NAME}.csv") if row["method"] in UNSUPERVISED),
        "dataset", "task", "bits", "method",
    )  # fmt: skip
    for panel, (dataset, task) in zip(axes, panels, strict=True):
        panel.set_title(f"{dataset}, {shown(task)}")
        for method in _methods(rows):
            points = [(float(key[3]), found) for key, found in scores.items() if key[:3] == (dataset, task, method)]
            _line(panel, points, look(method), method)
        best = [fmean(v) for key, v in rivals.items() if key[:3] == (dataset, task, str(sensitivity.BITS))]
        if best:
            panel.axhline(max(best), color="0.45", linestyle=":", label="best unsupervised rival")
        panel.set_xscale("log")
        panel.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        panel.set_xlabel("λ")
    axes[0].set_ylabel(f"MAP@50, {sensitivity.BITS} bits")
    legend(figure, axes)
    return save(figure, folder, name)


def draw_search_time(rows: list[Row], folder: Path, name: str) -> Path:
    """Milliseconds a query against the size of the database."""
    figure, (panel,) = new_figure(1, 1, width=COLUMN, height=2.2)
    values = grouped(rows, "method", "items")
    for method in _methods(rows):
        _line(panel, [(float(n), v) for (m, n), v in values.items() if m == method], look(method), method)
    _log_axes(panel)
    panel.set_xlabel("items")
    panel.set_ylabel("ms per query, one thread")
    legend(figure, [panel])
    return save(figure, folder, name)


def draw_training(rows: list[Row], folder: Path, name: str) -> Path:
    """Seconds and peak memory against the number of pairs, for the largest dimensions measured."""
    dims = max(((int(row["image_dim"]), int(row["text_dim"])) for row in rows), key=sum)
    kept = [row for row in rows if (int(row["image_dim"]), int(row["text_dim"])) == dims]
    figure, axes = new_figure(1, 2, width=0.75 * 7.1, height=2.0)
    for panel, column, label in ((axes[0], "seconds", "seconds"), (axes[1], "peak_mb", "peak memory, MB")):
        values = grouped(kept, "method", "items", value=column)
        for method in _methods(kept):
            _line(panel, [(float(n), v) for (m, n), v in values.items() if m == method], look(method), method)
        _log_axes(panel)
        panel.set_xlabel(f"pairs of {dims[0]} + {dims[1]} dimensions")
        panel.set_ylabel(label)
    legend(figure, axes)
    return save(figure, folder, name)


def _methods(rows: Iterable[Row]) -> list[str]:
    """Methods in the order of the legend, CCQ drawn last and so on top."""
    return in_order(row["method"] for row in rows)


def _log_axes(panel: Axes) -> None:
    """Both axes logarithmic, with plain numbers upwards: 0.1, 0.2, 0.5, 1, and so on, less of them over a long way."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    low, high = panel.get_ylim()
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())


def _line(panel: Axes, points: Points, seen: Look, label: str, every: int | None = None) -> None:
    """Means of the values at each x, with bars of a standard deviation where there are several."""
    if not points:
        return
    ordered = sorted(points, key=lambda point: point[0])
    x, means = [point[0] for point in ordered], [fmean(point[1]) for point in ordered]
    order = 3 + len(LOOKS) - (list(LOOKS).index(label) if label in LOOKS else len(LOOKS))
    if any(len(point[1]) > 1 for point in ordered):
        spread = [pstdev(point[1]) for point in ordered]
        panel.errorbar(x, means, spread, label=label, elinewidth=0.6, zorder=order, **seen.line_kwargs())
    else:
        panel.plot(x, means, label=label, markevery=every, zorder=order, **seen.line_kwargs())
