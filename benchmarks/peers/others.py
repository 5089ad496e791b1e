"""How much of the machine other programs took meanwhile: whether figures can be believed."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Others:
    """From when it is made: the share of all processors' time that went to programs that this one did not start.

    Children count as this program's once they have ended and were waited for. A host that takes processors away from a
    virtual machine ("steal") counts as another program (Linux).
    """

    def __init__(self) -> None:
        self._since, self._busy, self._own = time.monotonic(), _busy(), _own()

    def share(self) -> float:
        """Of 0 to 1, since then."""
        spent = (time.monotonic() - self._since) * (os.cpu_count() or 1)
        others = (_busy() - self._busy) - (_own() - self._own)
        return min(max(others / spent, 0.0), 1.0)


def _busy() -> float:
    """Seconds that all processors were not idle, and did not wait for disks."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    """Seconds of this process and of children that have ended."""
    return sum(os.times()[:4])
