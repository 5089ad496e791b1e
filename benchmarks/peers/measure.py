"""One service measured: what it takes to hold the items, and what it gives for that."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.peers.client import Load, ask, load, request
from benchmarks.peers.contestant import Contestant
from benchmarks.peers.data import NEIGHBOURS, Dataset, recall
from benchmarks.peers.others import Others
from benchmarks.peers.process import Server, free_port, on_disk, serving

TARGET = 0.97
"""Services are compared where they reach this recall."""
CONNECTIONS = (1, 64)
_INDEXING = 2  # requests under way: one is made or read while another is indexed
_AT_ONCE = 16
_GAIN = 0.001
_FILTERED = 200  # queries: some services take long for one


@dataclass(frozen=True)
class Searches:
    """Searches of one kind.

    Attributes
    ----------
    recall:
        The share of the exact ten nearest that was found.
    one, many:
        Load by 1 and by 64 connections.
    """

    recall: float
    one: Load
    many: Load


@dataclass(frozen=True)
class AtEffort:
    """A service told to try so hard.

    Attributes
    ----------
    filtered:
        Searches among the 0.1 % of the items that are in one group, at the default effort; None at others, and for
        services without filters.
    """

    effort: int
    default: bool
    plain: Searches
    filtered: Searches | None


@dataclass(frozen=True)
class Result:
    """All that was measured of one service.

    Attributes
    ----------
    training:
        Seconds before that, for a model of the items.
    indexed:
        Items a second, until all are on disk.
    memory, memory_again:
        Bytes an item that the server process has more than without items: once they were indexed, and after a restart
        and all queries at the default effort.
    disk:
        Bytes an item.
    others:
        The share of the processors, of 0 to 1, that other programs took meanwhile.
    """

    name: str
    service: str
    effort_name: str
    training: float
    indexed: float
    memory: float
    memory_again: float
    disk: float
    others: float
    efforts: list[AtEffort]

    def filtered(self) -> Searches | None:
        """Filtered searches, at the default effort; None without filters."""
        return next((one.filtered for one in self.efforts if one.default), None)

    def at_target(self) -> AtEffort | None:
        """What is the fastest of those that reach `TARGET`."""
        return next((one for one in self.efforts if one.plain.recall >= TARGET), None)


def measure(
    contestant: Contestant, data: Dataset, directory: Path, seconds: float, say: Callable[[str], None]
) -> Result:
    """Index everything into a new server, start it again, and search with rising effort.

    Efforts are tried until the default was among them and `TARGET` is reached, or recall rises no more.
    `seconds`: how long a load takes.

    Raises
    ------
    ServerError, RequestFailedError
        The server did not start, or a request was no success.
    """
    folder, port, n = directory / contestant.name, free_port(), len(data.items)
    others = Others()
    command = contestant.command(folder, port)
    with serving(command, port, folder, contestant.probe):
        contestant.prepare(partial(_one, port), data)
    # In a process of its own: what it took to make a collection would hide what the items take.
    with serving(command, port, folder, contestant.probe) as server:
        empty = server.resident()
        began = time.perf_counter()
        slices = ((lo, min(lo + contestant.batch, n)) for lo in range(0, n, contestant.batch))
        ask(port, (contestant.index(data, lo, hi) for lo, hi in slices), _INDEXING)
        contestant.finish(partial(_one, port))
        indexed = n / (time.perf_counter() - began)
        full = server.resident()
    say(f"{contestant.name}: {indexed:,.0f} items/s")
    efforts: list[AtEffort] = []
    again = 0
    for effort in contestant.efforts.values:
        # Each in a process of its own: Chroma heeds a new effort only before the first search.
        with serving(command, port, folder, contestant.probe) as server:
            contestant.use(partial(_one, port), effort)
            done = _at_effort(contestant, server, data, effort, seconds)
            if done.default:
                again = server.resident()
        efforts.append(done)
        say(f"{contestant.name} {effort or ''}: recall {done.plain.recall:.3f}, {_rates(done)} queries/s")
        if enough([one.plain.recall for one in efforts], past_default=effort >= contestant.efforts.default):
            break
    return Result(
        contestant.name,
        contestant.service,
        contestant.efforts.name,
        contestant.training,
        indexed,
        (full - empty) / n,
        (again - empty) / n,
        on_disk(folder) / n,
        others.share(),
        efforts,
    )


def enough(recalls: Sequence[float], *, past_default: bool) -> bool:
    """Whether no more effort is to be tried, after such recalls with rising effort."""
    if not past_default:
        return False
    gains = len(recalls) < 2 or recalls[-1] - recalls[-2] >= _GAIN
    return max(recalls) >= TARGET or not gains


def _at_effort(contestant: Contestant, server: Server, data: Dataset, effort: int, seconds: float) -> AtEffort:
    default = effort == contestant.efforts.default
    plain = _searches(contestant, server, data, effort, seconds, filtered=False)
    filtered = None
    if default and contestant.filters:
        filtered = _searches(contestant, server, data, effort, seconds, filtered=True)
    return AtEffort(effort, default, plain, filtered)


def _searches(
    contestant: Contestant, server: Server, data: Dataset, effort: int, seconds: float, *, filtered: bool
) -> Searches:
    asked = slice(_FILTERED if filtered else None)
    vectors = data.queries[asked]
    groups: Sequence[int | None] = data.wanted[asked].tolist() if filtered else [None] * len(vectors)
    requests = [
        contestant.search(vector, NEIGHBOURS, effort, group) for vector, group in zip(vectors, groups, strict=True)
    ]
    found = [contestant.found(reply) for reply in ask(server.port, requests, _AT_ONCE)]
    one, many = (load(server.port, requests, connections, seconds) for connections in CONNECTIONS)
    return Searches(recall(found, (data.nearest_in_group if filtered else data.nearest)[asked]), one, many)


def of_client(data: Dataset, directory: Path, seconds: float) -> dict[str, Load]:
    """What the client does with a server that has nothing to do, by connections."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.peers.constant", str(port)]
    requests = [request("POST", "/search", {"vector": vector.tolist(), "limit": 10}) for vector in data.queries]
    with serving(command, port, directory / "constant", "/"):
        return {str(connections): load(port, requests, connections, seconds) for connections in CONNECTIONS}


def _rates(done: AtEffort) -> str:
    kinds = [done.plain] if done.filtered is None else [done.plain, done.filtered]
    return ", filtered ".join(f"{one.many.rate:,.0f}" for one in kinds)


def _one(port: int, content: bytes) -> bytes:
    (reply,) = ask(port, [content])
    return reply
