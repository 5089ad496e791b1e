"""Experiment `map`: MAP@50 of every task, code length, method and seed (Table 2 of the paper)."""

from __future__ import annotations

from itertools import product

from benchmarks.paper.measures import map_score
from benchmarks.paper.plan import Plan
from benchmarks.paper.results import Results, Value

NAME = "map"
KEYS = ("dataset", "method", "bits", "seed", "task")


def run(plan: Plan) -> None:
    """Measure what `map.csv` lacks."""
    results = Results(plan.output / f"{NAME}.csv", KEYS)
    for (dataset, data), bits, (name, method), seed in product(
        plan.data.items(), plan.bits, plan.methods.items(), range(plan.seeds)
    ):
        key: dict[str, Value] = {"dataset": dataset, "method": name, "bits": bits, "seed": seed}
        missing = [task for task in method.tasks if {**key, "task": task.name} not in results]
        if not missing:
            continue
        plan.say(f"{NAME}: {dataset}, {name}, {bits} bits, seed {seed}")
        trained = method.fit(data.train, data.train_labels, bits, seed)
        results.add([{**key, "task": task.name, "value": map_score(trained, data, task)} for task in missing])
