"""Experiment `binarization`: what MAP loses when continuous vectors become codes (the paper's Figure 6a)."""

from __future__ import annotations

from itertools import product

from benchmarks.paper.measures import map_score
from benchmarks.paper.plan import Plan
from benchmarks.paper.results import Results, Value

NAME = "binarization"
KEYS = ("dataset", "method", "bits", "seed", "task", "vectors")
BITS = 32
CONTINUOUS, CODES = "continuous", "codes"


def run(plan: Plan) -> None:
    """Measure what `binarization.csv` lacks."""
    results = Results(plan.output / f"{NAME}.csv", KEYS)
    for (dataset, data), (name, method), seed in product(plan.data.items(), plan.methods.items(), range(plan.repeats)):
        key: dict[str, Value] = {"dataset": dataset, "method": name, "bits": BITS, "seed": seed}
        missing = [
            (task, vectors)
            for task in method.tasks
            for vectors in (CONTINUOUS, CODES)
            if {**key, "task": task.name, "vectors": vectors} not in results
        ]
        if not missing:
            continue
        plan.say(f"{NAME}: {dataset}, {name}, seed {seed}")
        trained = method.fit(data.train, data.train_labels, BITS, seed)
        results.add(
            {
                **key,
                "task": task.name,
                "vectors": vectors,
                "value": map_score(trained, data, task, continuous=vectors == CONTINUOUS),
            }
            for task, vectors in missing
        )
