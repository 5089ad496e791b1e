"""What the measurement has to know of a service."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.data import Dataset, Float32

Ask = Callable[[bytes], bytes]
"""Sends one request to the service, and gives the body of its reply."""


class MissingPeerError(RuntimeError):
    """A service is to be measured that is not installed."""


@dataclass(frozen=True)
class Efforts:
    """What a service can be told to do better or faster, for each search.

    Attributes
    ----------
    name:
        Its own word for it; empty if there is nothing to tell.
    values:
        What to try, from the fastest to the best.
    default:
        What it does when it is told nothing; one of `values`.
    """

    name: str
    values: Sequence[int]
    default: int


class Contestant(ABC):
    """One service in one configuration.

    Attributes
    ----------
    name:
        Unique among all.
    service:
        The service and its version.
    probe:
        Path that a GET succeeds at once the service is ready.
    batch:
        Items in a request that indexes.
    filters:
        Whether it can search the items of one group alone.
    training:
        Seconds that `prepare` spent on making a model from the items, or has spent before on the same one.
    """

    name: str
    service: str
    probe: str
    efforts: Efforts
    batch = 1000
    filters = True
    training = 0.0

    @abstractmethod
    def check(self) -> None:
        """Raise MissingPeerError if it is not installed."""

    @abstractmethod
    def command(self, directory: Path, port: int) -> Sequence[str]:
        """What serves the data in `directory`, there, on a port of the loopback; none yet, or those of a run before."""

    @abstractmethod
    def prepare(self, ask: Ask, data: Dataset) -> None:
        """Make an empty collection on a new server."""

    @abstractmethod
    def index(self, data: Dataset, lo: int, hi: int) -> bytes:
        """The request that indexes rows lo to hi of the items, as its own client sends them."""

    def finish(self, ask: Ask) -> None:  # noqa: B027 (most have nothing to do)
        """See to it that what was indexed is on disk, if it is not already."""

    def use(self, ask: Ask, effort: int) -> None:  # noqa: B027 (most have nothing to do)
        """Set the effort of searches, where it is not told with each of them; before the first search of a server."""

    @abstractmethod
    def search(self, vector: Float32, limit: int, effort: int, group: int | None) -> bytes:
        """The request for the nearest items of a vector (DIM,), as a list of numbers; of a group, or of all."""

    @abstractmethod
    def found(self, reply: bytes) -> list[int]:
        """The rows of the items in the reply to a search, best first."""


def in_base64(vector: Float32) -> str:
    """Little-endian float32 in base64."""
    return base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode()
