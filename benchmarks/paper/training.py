"""Experiment `training`: time and peak memory against the number of pairs (the paper's Figures 7a and 7b)."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.paper.methods import DEFAULTS, PAPER
from benchmarks.paper.plan import Plan
from benchmarks.paper.results import Results, Value
from benchmarks.paper.synthetic import PairsOnDisk
from benchmarks.paper.train_once import MINI_BATCH

NAME = "training"
KEYS = ("method", "bits", "image_dim", "text_dim", "items")
VALUES = ("seconds", "start_mb", "peak_mb", "note")
BITS = 32
SIZES = (10_000, 20_000, 50_000, 100_000)
DIMS = (64, 64)
LIMIT = 600.0
BATCH = 10_000
_FAILED = "failed"
QUADRATIC = ("CMSSH", "IMH")
"""Rivals that compare all training objects with each other; the paper leaves them out too."""


def contestants(plan: Plan) -> list[str]:
    """Who trains: CCQ on everything at once and, if this version can, on batches; the rivals that scale."""
    batches = [MINI_BATCH] if importlib.util.find_spec("ccq_core.batches") else []
    others = [name for name in plan.methods if name not in (DEFAULTS, PAPER, *QUADRATIC)]
    return [*([DEFAULTS, *batches] if DEFAULTS in plan.methods else []), *others]


def run(
    plan: Plan, sizes: Sequence[int] = SIZES, dims: tuple[int, int] = DIMS, limit: float = LIMIT, batch: int = BATCH
) -> None:
    """Measure what `training.csv` lacks.

    Parameters
    ----------
    sizes:
        Numbers of pairs.
    dims:
        Dimensions of image and text. The files take 4 (image + text) bytes a pair, in the output folder while they are
        needed; training on everything at once takes about five times as much memory.
    limit:
        Seconds after which a training is given up, and not tried with more pairs.
    batch:
        Pairs of a mini-batch.
    """
    results = Results(plan.output / f"{NAME}.csv", KEYS, VALUES)
    out: set[str] = set()
    for n in sorted(sizes):
        keys: dict[str, dict[str, Value]] = {
            name: {"method": name, "bits": BITS, "image_dim": dims[0], "text_dim": dims[1], "items": n}
            for name in contestants(plan)
        }
        missing = [name for name, key in keys.items() if key not in results and name not in out]
        if not missing:
            continue
        pairs = PairsOnDisk(plan.output / "training-data", n, dims, batch)
        try:
            pairs.write()
            for name in missing:
                plan.say(f"{NAME}: {name}, {n:,} pairs of {dims[0]} + {dims[1]} dimensions")
                measured = _measure(name, pairs, limit)
                if measured["note"]:
                    plan.say(f"{NAME}: {name}, {n:,} pairs: {measured['note']}")
                    out.add(name)
                if not str(measured["note"]).startswith(_FAILED):  # to be tried again once what is wrong is right
                    results.add([{**keys[name], **measured}])
        finally:
            shutil.rmtree(pairs.folder, ignore_errors=True)


def _measure(name: str, pairs: PairsOnDisk, limit: float) -> dict[str, Value]:
    numbers = [str(number) for number in (BITS, pairs.n, *pairs.dims, pairs.batch)]
    command = [sys.executable, "-m", "benchmarks.paper.train_once", name, *numbers, str(pairs.folder)]
    nothing: dict[str, Value] = {"seconds": "", "start_mb": "", "peak_mb": ""}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, env=os.environ)
    except subprocess.TimeoutExpired:
        return {**nothing, "note": f"given up after {limit:g} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {**nothing, "note": f"{_FAILED}, {done.returncode}: {lines[-1] if lines else 'no message'}"[:200]}
    return {**json.loads(done.stdout), "note": ""}
