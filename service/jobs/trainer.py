"""The process that trains: `python -m service.jobs.trainer DIRECTORY`, on its own, so that it cannot harm the server.

It reads `job.json` and features in the directory (see `service.jobs.arrays`), says how far it is as lines of JSON on
standard output, and leaves `model.ccq` and then `result.json`. It ends when its standard input does: with the server,
however that ends. Begun again, it goes on from its checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ccq_core import CCQ, CCQError, Progress
from ccq_core.batches import Batch, NpyBatches
from ccq_core.features import FeatureSet, check_features
from ccq_core.modelfile import write
from ccq_core.neighbours import find_neighbours
from ccq_core.partners import find_partners
from service.jobs.arrays import feature_files, rows_together

JOB, MODEL, RESULT, CHECKPOINT = "job.json", "model.ccq", "result.json", "checkpoint.npz"
MOST_HELD_OUT = 10_000
_NICE = 10
_FIRST_TO_BE_KILLED = "800"
Rows = NDArray[np.intp]


class Batches:
    """Objects in files, without some of them.

    Parameters
    ----------
    files:
        All objects.
    without:
        Ascending numbers of those that are left out.
    """

    def __init__(self, files: NpyBatches, without: Rows) -> None:
        self._files = files
        self._without = without

    def __iter__(self) -> Iterator[Batch]:
        for first, batch in numbered(self._files):
            n = len(next(iter(batch.values())))
            kept = ~np.isin(np.arange(first, first + n), self._without, assume_unique=True)
            if kept.any():
                yield batch if kept.all() else {name: array[kept] for name, array in batch.items()}


def numbered(files: NpyBatches) -> Iterator[tuple[int, Batch]]:
    """Batches, and the number of the first object of each."""
    first = 0
    for batch in files:
        yield first, batch
        first += len(next(iter(batch.values())))


def hold_out(files: NpyBatches, share: float, seed: int) -> tuple[Rows, FeatureSet | None]:
    """Objects to try a model on: a share of those with several modalities, by number; and their features, if any."""
    several = [
        first + np.flatnonzero(sum((~np.isnan(array).all(axis=1)).astype(int) for array in batch.values()) > 1)
        for first, batch in numbered(files)
    ]
    paired = np.concatenate(several)
    most = min(int(share * len(paired)), MOST_HELD_OUT)
    rows = np.sort(np.random.default_rng([seed, 1]).choice(paired, most, replace=False))
    if not most:
        return rows, None
    parts: dict[str, list[NDArray[Any]]] = {}
    for first, batch in numbered(files):
        lo, hi = np.searchsorted(rows, [first, first + len(next(iter(batch.values())))])
        for name, array in batch.items():
            parts.setdefault(name, []).append(array[rows[lo:hi] - first])
    return rows, check_features({name: np.concatenate(part) for name, part in parts.items()})


def train(directory: Path) -> None:
    """Do the job of a directory."""
    job = orjson.loads((directory / JOB).read_bytes())
    paths = feature_files(directory)
    _tell("prepare", 0, 1)
    files = NpyBatches(paths, rows_together(job["dims"]))
    model = CCQ(**job["settings"])
    rows, unseen = hold_out(files, job["held_out"], model.seed)
    seconds = 0.0

    def report(progress: Progress) -> None:
        nonlocal seconds
        seconds = progress.seconds
        _tell("train", progress.iteration, progress.iterations, loss=progress.loss)

    model.fit(Batches(files, rows), callback=report, checkpoint=directory / CHECKPOINT)
    partners = [] if unseen is None else list(find_partners(model, unseen, _tell_evaluating))
    neighbours = [] if unseen is None else list(find_neighbours(model, unseen, _tell_evaluating))
    write(directory / MODEL, model.to_bytes())
    result = {
        "objects": model.objects_,
        "held_out": len(rows),
        "iterations": len(model.losses_),
        "loss": model.losses_[-1],
        "losses": model.losses_,
        "seconds": round(seconds, 3),
        "evaluation": [direction.plain() for direction in partners],
        "neighbours": [modality.plain() for modality in neighbours],
    }
    write(directory / RESULT, orjson.dumps(result))


def _tell_evaluating(done: int, total: int) -> None:
    _tell("evaluate", done, total)


def _tell(phase: str, done: int, total: int, **extra: Any) -> None:
    _say({"phase": phase, "done": done, "total": total, **extra})


def _say(line: dict[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(line) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_the_server() -> None:
    """End this process when the server lets go of its standard input."""

    def watch() -> None:
        while os.read(0, 1 << 10):  # not sys.stdin, whose lock would be missed at the end
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _give_way() -> None:
    """Take what the server leaves of the processors; and where memory runs out, be what is ended."""
    os.nice(_NICE)
    with contextlib.suppress(OSError):  # Linux alone has it
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_BE_KILLED, encoding="ascii")


def main(directory: Path) -> int:
    """Train, or say why not: the exit status."""
    _end_with_the_server()
    _give_way()
    try:
        train(directory)
    except (CCQError, MemoryError, OSError) as error:
        _say({"error": type(error).__name__, "detail": str(error), "errno": getattr(error, "errno", None)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
