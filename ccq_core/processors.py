"""How many processors there are to work with."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")


def processors() -> int:
    """Processors that this process may use, at least 1.

    Those that its affinity names, and no more than its control groups (version 2) give it time of: a container that is
    given two processors of a machine with 64 sees all of them, but threads on more than two would wait for their share.
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([there, *_quotas(_OWN_GROUP, _GROUPS)]))


def _quotas(own: Path, groups: Path) -> list[int]:
    """Whole processors that a control group and those around it are given time of, those without bounds left out."""
    try:
        line = next(line for line in own.read_text().splitlines() if line.startswith("0::/"))
    except (OSError, UnicodeDecodeError, StopIteration):
        return []
    group = PurePosixPath(line.removeprefix("0::/"))
    quotas = []
    for part in (group, *group.parents):
        try:
            quota, period = (groups / part / "cpu.max").read_text().split()
            quotas.append(-(-int(quota) // int(period)))
        except (OSError, ValueError, ZeroDivisionError):  # none, as of the outermost group, or "max"
            continue
    return quotas
