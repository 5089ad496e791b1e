"""What a kind of job is: the one thing to write for a new kind, besides the route that adds such jobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Cancelled(Exception):  # noqa: N818 (no error)
    """Ends a job that somebody does not want any more."""


class Interrupted(Exception):  # noqa: N818 (no error)
    """Ends a job because the server stops; it is run again at the next start."""


class Context(Protocol):
    """What a job gets while it runs.

    Attributes
    ----------
    target:
        Name of the model or collection that it is about.
    parameters:
        The JSON that it was added with.
    directory:
        A directory of its own, which exists. It is as an attempt before left it, so a job that was interrupted may go
        on from what it put there; and it is removed once the job has ended.
    """

    @property
    def target(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    @property
    def directory(self) -> Path: ...

    def progress(self, phase: str, done: int, total: int | None = None, **extra: Any) -> None:
        """Tell how far it is: `done` of `total` steps of a phase, and what else there is to tell (JSON). Costs little.

        Raises what `check` raises.
        """

    def check(self) -> None:
        """Raise Cancelled or Interrupted if the job has to end. To be called at least every second or so."""


class JobKind(Protocol):
    """Does the jobs of one kind, one at a time, in a thread of its own.

    Attributes
    ----------
    kind:
        Its name, a word of lower-case letters.
    """

    kind: str

    def run(self, context: Context) -> Mapping[str, Any]:
        """Do a job: its result, as JSON.

        It may have been run before, and ended at any point. What it raises has failed it: errors of the service and the
        core are told, others are logged. `Cancelled` and `Interrupted` from `context.check` are to be let through.
        """
