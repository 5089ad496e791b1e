"""`python -m benchmarks.rivals DATASET.npz`: MAP@50 of every rival beside the paper's."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rivals import RIVALS
from benchmarks.rivals.evaluation import cross_validate, evaluate
from ccq_core.evaluation import LabelledData, load_dataset

Scores = dict[str, float]


def main(arguments: list[str] | None = None) -> None:
    """Parse, measure, print."""
    options = _parser().parse_args(arguments)
    data = load_dataset(options.dataset)
    settings: dict[str, Any] = json.loads(options.set)
    paper = _paper(options.paper, options.column) if options.paper else {}
    rows: list[dict[str, Any]] = []
    for method in options.methods:
        for bits in options.bits:
            row = _measure(method, bits, data, options, settings)
            known = paper.get(method, {}).get(bits, {})
            row["paper"] = {task: known[short(task)] for task in row["map"] if short(task) in known}
            rows.append(row)
            if not options.json:
                _print_row(row, first=len(rows) == 1)
        if paper and not options.json:
            _print_difference(method, [row for row in rows if row["method"] == method])
    if options.json:
        print(json.dumps(rows, indent=1))


def _measure(
    method: str, bits: int, data: LabelledData, options: argparse.Namespace, settings: dict[str, Any]
) -> dict[str, Any]:
    started = time.perf_counter()
    runs: list[Scores] = []
    for seed in range(options.seeds):
        model = RIVALS[method](bits, seed=seed, **settings)
        if options.folds:
            runs.append(cross_validate(model, data, folds=options.folds, seed=seed))
        else:
            shown = shuffled(data, seed) if options.shuffle else data
            runs.append(evaluate(model.fit(shown.train, shown.train_labels), shown))
    return {
        "method": method,
        "bits": bits,
        "map": {task: float(np.mean([run[task] for run in runs])) for task in runs[0]},
        "std": {task: float(np.std([run[task] for run in runs])) for task in runs[0]},
        "seconds": (time.perf_counter() - started) / options.seeds,
    }


def shuffled(data: LabelledData, seed: int) -> LabelledData:
    """The same data with training rows in random order: other ties win."""
    order = np.random.default_rng(seed).permutation(len(data.train_labels))
    train = {name: array[order] for name, array in data.train.items()}
    return LabelledData(train, data.test, data.train_labels[order], data.test_labels)


def short(task: str) -> str:
    """The paper's name of a task: ``image->text`` is ``I->T``."""
    return "->".join(name[0].upper() for name in task.split("->"))


def _paper(path: Path, column: str) -> dict[str, dict[int, Scores]]:
    """Method to bits to task to MAP. The paper does not say which SCM it ran, so both are held against its row."""
    table = json.loads(path.read_text(encoding="utf-8"))["map"][column]
    result: dict[str, dict[int, Scores]] = {}
    for method in RIVALS:
        for task, by_method in table.items():
            for bits, value in by_method.get(method.split("-")[0], {}).items():
                result.setdefault(method, {}).setdefault(int(bits), {})[task] = value
    return result


def _print_row(row: dict[str, Any], *, first: bool) -> None:
    if first:
        print(f"{'method':9} {'bits':>4}  " + "  ".join(f"{short(task):>13}" for task in row["map"]) + "  s/run")
    cells = []
    for task, value in row["map"].items():
        known = row["paper"].get(task)
        cells.append(f"{value:.3f}" + (f" ({known:.3f})" if known is not None else " " * 8))
    print(f"{row['method']:9} {row['bits']:4}  " + "  ".join(cells) + f"  {row['seconds']:5.1f}", flush=True)


def _print_difference(method: str, rows: list[dict[str, Any]]) -> None:
    signed = [row["map"][task] - known for row in rows for task, known in row["paper"].items()]
    if signed:
        print(
            f"{method:9} mean absolute difference {np.abs(signed).mean():.4f}, mean difference {np.mean(signed):+.4f}"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("dataset", type=Path, help="NAME_train, NAME_test, label_train and label_test in an .npz file")
    parser.add_argument("--bits", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--seeds", type=int, default=10, help="runs that are averaged")
    parser.add_argument("--methods", nargs="+", choices=list(RIVALS), default=list(RIVALS), metavar="NAME")
    parser.add_argument("--set", default="{}", metavar="JSON", help="other parameters of the methods than the defaults")
    parser.add_argument("--folds", type=int, default=0, help="cross-validate within the training rows instead")
    parser.add_argument(
        "--shuffle", action="store_true", help="random order of the database, so that ties fall otherwise"
    )
    parser.add_argument("--paper", type=Path, help="map_table.json with the paper's numbers, printed in brackets")
    parser.add_argument("--column", default="Wiki", help="data set in that table")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    main()
