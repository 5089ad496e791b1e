"""How far a job is, and how long that will still take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Progress:
    """The progress of one job.

    Parameters
    ----------
    clock:
        Seconds, which only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._phase: str | None = None
        self._began = 0.0
        self._from = 0
        self._told: dict[str, Any] | None = None

    def tell(self, phase: str, done: int, total: int | None, extra: dict[str, Any]) -> None:
        """So many steps of a phase are done. Its first telling is from where its speed is measured."""
        now = self._clock()
        if phase != self._phase:
            self._phase, self._began, self._from = phase, now, done
        self._told = {
            "phase": phase,
            "done": done,
            "total": total,
            "fraction": None if not total else min(done / total, 1.0),
            "seconds_left": self._left(done, total, now),
            **extra,
        }

    @property
    def told(self) -> dict[str, Any] | None:
        """What was told last, as `service.schemas.jobs.JobProgress`."""
        return self._told

    def _left(self, done: int, total: int | None, now: float) -> float | None:
        steps = done - self._from
        if total is None or steps <= 0:
            return None
        return round(max(total - done, 0) * (now - self._began) / steps, 1)
