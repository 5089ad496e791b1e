"""Experiment `lambda`: the weight of texts (the paper's Figures 7c and 7d)."""

from __future__ import annotations

from itertools import product

from benchmarks.paper.data import CROSS, task_named
from benchmarks.paper.measures import map_score
from benchmarks.paper.methods import ccq
from benchmarks.paper.plan import Plan
from benchmarks.paper.results import Results, Value

NAME = "lambda"
KEYS = ("dataset", "method", "bits", "lambda", "seed", "task")
BITS = 32
LAMBDAS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)


def run(plan: Plan) -> None:
    """Measure what `lambda.csv` lacks."""
    results = Results(plan.output / f"{NAME}.csv", KEYS)
    for (dataset, data), name, weight, seed in product(plan.data.items(), plan.presets, LAMBDAS, range(plan.repeats)):
        key: dict[str, Value] = {"dataset": dataset, "method": name, "bits": BITS, "lambda": weight, "seed": seed}
        missing = [task for task in map(task_named, CROSS) if {**key, "task": task.name} not in results]
        if not missing:
            continue
        plan.say(f"{NAME}: {dataset}, {name}, lambda {weight:g}, seed {seed}")
        method = ccq(name, weights={"image": 1.0, "text": weight})
        trained = method.fit(data.train, data.train_labels, BITS, seed)
        results.add([{**key, "task": task.name, "value": map_score(trained, data, task)} for task in missing])
