"""What one call of the driver measures, and where it puts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.paper.methods import DEFAULTS, PAPER, Method
from ccq_core.evaluation import LabelledData

BITS = (8, 16, 32, 64)


@dataclass(frozen=True)
class Plan:
    """Choices that the experiments share.

    Attributes
    ----------
    data:
        Data sets by name.
    methods:
        Methods by name.
    output:
        Folder of the CSV files and figures.
    seeds:
        Seeds of `map`.
    repeats:
        Seeds of the experiments that the paper shows as curves.
    bits:
        Code lengths of `map`.
    say:
        Told what is being done.
    """

    data: Mapping[str, LabelledData]
    methods: Mapping[str, Method]
    output: Path
    seeds: int = 10
    repeats: int = 3
    bits: Sequence[int] = BITS
    say: Callable[[str], None] = field(default=print)

    @property
    def presets(self) -> tuple[str, ...]:
        """The CCQ methods among those chosen."""
        return tuple(name for name in (DEFAULTS, PAPER) if name in self.methods)
