"""One training in a process of its own, for `benchmarks.paper.training`: seconds and peak memory as JSON.

`python -m benchmarks.paper.train_once METHOD BITS N IMAGE_DIM TEXT_DIM BATCH FOLDER`
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from benchmarks.paper.methods import DEFAULTS, methods
from benchmarks.paper.synthetic import PairsOnDisk
from ccq_core import CCQ

MINI_BATCH = "CCQ, mini-batches"


def peak_megabytes() -> float:
    """Most memory that this process has had resident.

    From /proc where there is one: on Linux ru_maxrss of a new process starts at what its parent had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def train_once(method: str, bits: int, pairs: PairsOnDisk) -> dict[str, float]:
    """Train and measure: `seconds` from data on disk to a model, `start_mb` before it, `peak_mb` after it."""
    chosen = methods()
    start_mb = peak_megabytes()
    start = time.perf_counter()
    if method == MINI_BATCH:
        # mypy knows the `fit` of before mini-batches, which takes mappings alone.
        fit = getattr(CCQ(bits=bits), "fit")  # noqa: B009
        fit(pairs)
    else:
        labels = pairs.labels()
        features = dict(pairs.features(0, pairs.n))
        if method == DEFAULTS:
            CCQ(bits=bits).fit(features)
        else:
            chosen[method].fit(features, labels, bits, 0)
    return {"seconds": time.perf_counter() - start, "start_mb": start_mb, "peak_mb": peak_megabytes()}


def main(arguments: list[str]) -> None:
    """Entry point."""
    method, *numbers, folder = arguments
    bits, n, image, text, batch = map(int, numbers)
    print(json.dumps(train_once(method, bits, PairsOnDisk(Path(folder), n, (image, text), batch))))


if __name__ == "__main__":
    main(sys.argv[1:])
