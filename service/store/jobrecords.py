"""What the service asks of a store about background jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from service.store.interface import Once

State = Literal["queued", "running", "done", "failed", "cancelled"]
UNFINISHED: tuple[State, ...] = ("queued", "running")


@dataclass(frozen=True)
class JobRecord:
    """A job as it is stored.

    Attributes
    ----------
    id:
        Its kind, when it was made (UTC), and four hexadecimal digits, as in ``train-20261128T110233-3f9a``.
    kind, target:
        What is done, and the name of the model or collection that it is done to.
    parameters:
        JSON that says how.
    created, started, ended:
        ISO 8601 in UTC; `started` is of the last attempt.
    state:
        `running` in a store that was just opened: the server that ran it died.
    attempts, deaths:
        How often it was begun, and how many of these attempts ended with the death of the server.
    cancelling:
        Whether it is to be cancelled as soon as it can be.
    progress, result, error:
        JSON: how far it had come when it ended, what it gave, why it failed.
    """

    id: str
    kind: str
    target: str
    parameters: Mapping[str, Any]
    created: str
    state: State = "queued"
    started: str | None = None
    ended: str | None = None
    attempts: int = 0
    deaths: int = 0
    cancelling: bool = False
    progress: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing will be done any more."""
        return self.state not in UNFINISHED


class JobStore(Protocol):
    """The jobs of a store. Raises what a store raises."""

    def all(self) -> list[JobRecord]:
        """All jobs, from the oldest to the newest."""

    def save(self, record: JobRecord, forget: Sequence[str] = (), once: Once | None = None) -> None:
        """Store a job, or what has become of it; and forget the jobs with these ids.

        With `once`, which is called with None, only if `check` lets it.
        """

    def check(self, once: Once) -> None:
        """Return if nothing was stored that is to be stored once; else DoneBefore, or KeyReusedError."""

    def known(self, key: str) -> bool:
        """Whether a job was stored once under this key."""

    def delete(self, job: str) -> None:
        """Forget the job with this id."""
