"""Experiment `curves`: precision-recall and precision@R of the cross-modal tasks at 16 and 32 bits (Figures 3 to 5)."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.paper.data import CROSS, task_named
from benchmarks.paper.measures import precision_at, precision_recall, relevant_results
from benchmarks.paper.plan import Plan
from benchmarks.paper.results import Results, Value

NAME = "curves"
KEYS = ("dataset", "method", "bits", "task", "curve", "x")
BITS = (16, 32)
RECALL, TOP = "precision-recall", "precision@R"
LEVELS = np.linspace(0.0, 1.0, 21)
SEED = 0


def ranks(n: int) -> list[int]:
    """The R of precision@R in a database of n items."""
    return [r for r in (1, 10, 25, 50, *range(100, n, 100)) if r < n] + [n]


def run(plan: Plan) -> None:
    """Measure what `curves.csv` lacks: whole rankings of the database, one seed."""
    results = Results(plan.output / f"{NAME}.csv", KEYS)
    for (dataset, data), bits, (name, method) in product(plan.data.items(), BITS, plan.methods.items()):
        n = len(data.train_labels)
        key: dict[str, Value] = {"dataset": dataset, "method": name, "bits": bits}
        last: dict[str, Value] = {"curve": TOP, "x": n}
        missing = [task for task in map(task_named, CROSS) if {**key, "task": task.name, **last} not in results]
        if not missing:
            continue
        plan.say(f"{NAME}: {dataset}, {name}, {bits} bits")
        trained = method.fit(data.train, data.train_labels, bits, SEED)
        for task in missing:
            database = {modality: data.train[modality] for modality in task.database}
            ids = trained.rank({task.query: data.test[task.query]}, database, n)
            relevant = relevant_results(ids, data.test_labels, data.train_labels)
            points = [(RECALL, float(x), y) for x, y in zip(LEVELS, precision_recall(relevant, LEVELS), strict=True)]
            at = ranks(n)
            points += [(TOP, float(x), y) for x, y in zip(at, precision_at(relevant, at), strict=True)]
            results.add(
                [{**key, "task": task.name, "curve": curve, "x": x, "value": float(y)} for curve, x, y in points]
            )
