"""Experiment `semi`: unpaired images and texts beside few pairs (the paper's Figures 6b and 6c), on resampled Wiki."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.paper.data import TASKS, WIKI
from benchmarks.paper.measures import map_score
from benchmarks.paper.plan import Plan
from benchmarks.paper.resample import semi_paired
from benchmarks.paper.results import Results, Value

NAME = "semi"
KEYS = ("dataset", "method", "bits", "unpaired", "pairs", "seed", "task")
BITS = 32
PAIRS = (500, 1000, 2000, 4000, 8000)
UNPAIRED = 10_000


def run(plan: Plan) -> None:
    """Measure what `semi.csv` lacks.

    Trained on resampled objects; the database is the real training objects and the queries are the real test objects,
    so that neither depends on how many objects there were in training.
    """
    if WIKI not in plan.data:
        plan.say(f"{NAME}: left out, it resamples Wiki (--wiki FILE)")
        return
    results = Results(plan.output / f"{NAME}.csv", KEYS)
    data = plan.data[WIKI]
    for name, seed, pairs, unpaired in product(plan.presets, range(plan.repeats), PAIRS, (UNPAIRED, 0)):
        key: dict[str, Value] = {
            "dataset": WIKI, "method": name, "bits": BITS, "unpaired": unpaired, "pairs": pairs, "seed": seed,
        }  # fmt: skip
        missing = [task for task in TASKS if {**key, "task": task.name} not in results]
        if not missing:
            continue
        plan.say(f"{NAME}: {name}, {pairs:,} pairs, {unpaired:,} unpaired, seed {seed}")
        features = semi_paired(data.train, pairs, unpaired, seed)
        trained = plan.methods[name].fit(features, np.empty(0), BITS, seed)
        results.add([{**key, "task": task.name, "value": map_score(trained, data, task)} for task in missing])
