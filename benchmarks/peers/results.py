"""What a run found, as it is written to files and read again."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from benchmarks.peers.client import Load
from benchmarks.peers.measure import Result


@dataclass(frozen=True)
class Machine:
    """Where it was measured; server and client share its processors."""

    processor: str
    cores: int
    python: str

    @classmethod
    def this(cls) -> Machine:
        """The machine that this runs on (Linux)."""
        facts = Path("/proc/cpuinfo").read_text()
        name = facts.partition("model name")[2].partition(":")[2].partition("\n")[0].strip()
        return cls(name or platform.machine(), len(os.sched_getaffinity(0)), platform.python_version())


@dataclass(frozen=True)
class Report:
    """One run.

    Attributes
    ----------
    seconds:
        How long each load took, and the run as a whole.
    client:
        What the client does with a constant reply, by number of connections.
    """

    items: int
    queries: int
    seed: int
    seconds: float
    seconds_in_all: float
    machine: Machine
    client: dict[str, Load]
    results: list[Result]

    def write(self, file: Path) -> None:
        """Write it as JSON."""
        file.write_bytes(orjson.dumps(self, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    @classmethod
    def read(cls, file: Path) -> Report:
        """Read what `write` wrote.

        Raises
        ------
        ValueError
            The file is something else.
        """
        try:
            return TypeAdapter(cls).validate_json(file.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{file}: expected what `python -m benchmarks.peers --json` writes: {error}") from None
