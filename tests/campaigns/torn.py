"""Damaged files: a server refuses them, reports what it cannot give, or gives exactly what was acknowledged.

    python -m tests.campaigns.torn --trials 1000 --data DIR

DIR is made, and must not exist. Ends with status 1 if anything wrong was given, or not named by `ccq check`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import shutil
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.errors import StartError
from service.store.check import check
from service.store.sqlite import DATABASE_NAME
from tests.campaigns.facts import CHECKSUM, Facts, Refused, same, served_collection, served_models, served_names
from tests.campaigns.writers import SHARED, Writer
from tests.service.harness import InProcess

LOG_NAME = DATABASE_NAME + "-wal"
_PAGE = 4096
_REPORTED = ("storage_error", "collection_failed")


class Client:
    """The service in this process, called as an httpx client is."""

    def __init__(self, service: InProcess) -> None:
        self._service = service

    def request(self, method: str, path: str, **rest: Any) -> Any:
        return self._service.request(method, path, **rest)

    def get(self, path: str, params: Any = None) -> Any:
        return self._service.request("GET", path, params=params)

    def post(self, path: str, json: Any) -> Any:
        return self._service.request("POST", path, json=json)


@dataclass(frozen=True)
class Source:
    """A data directory as it was at one moment, and what held after each write up to then."""

    directory: Path
    history: list[Facts]


def make_sources(directory: Path, rng: random.Random, writes: int = 40) -> list[Source]:
    """Directories with everything in the log, with all in the database, and with some in each."""
    service = InProcess(directory / "live")
    client, writer = Client(service), Writer(0, rng)
    sources = []
    try:
        service.create(SHARED)
        others = served_models(client) | served_collection(client, SHARED)
        history = [{}, {("model", "tiny"): CHECKSUM}, others]

        def write() -> None:
            for _ in range(writes):
                writer.write(client)
                history.append(others | writer.facts)

        write()
        sources.append(Source(shutil.copytree(directory / "live", directory / "log"), list(history)))
        service.restart()
        sources.append(Source(shutil.copytree(directory / "live", directory / "database"), list(history)))
        write()
        sources.append(Source(shutil.copytree(directory / "live", directory / "both"), list(history)))
    finally:
        service.close()
    return sources


@dataclass(frozen=True)
class Damage:
    """What was done to a file; `cut`: whether its end is missing or, as good as that, was damaged."""

    what: str
    cut: bool = False


def damage(file: Path, rng: random.Random) -> Damage:
    """Overwrite, zero or cut off a part."""
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data))
    page = at - at % _PAGE
    kind = rng.choice(["bit", "bytes", "page", "zeros", "cut", "cut at a page"])
    if kind == "bit":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        size = min(rng.randint(1, 3 * _PAGE), len(data) - at)
        data[at : at + size] = rng.randbytes(size)
    elif kind == "page":
        data[page : page + _PAGE] = rng.randbytes(min(_PAGE, len(data) - page))
    elif kind == "zeros":
        size = rng.choice([512, _PAGE, 8 * _PAGE])
        data[at : at + size] = bytes(min(size, len(data) - at))
    else:
        del data[at if kind == "cut" else page :]
    file.write_bytes(data)
    return Damage(f"{file.name}: {kind} at {at}", cut=kind.startswith("cut") or at > len(data) - 10 * _PAGE)


def trial(source: Source, work: Path, rng: random.Random) -> str:
    """Damage a copy, and look at what a server makes of it: ``refused``, ``reported``, ``whole`` or ``older``.

    ``older`` is allowed where the end of the log is damaged: that cannot be told from a write that was cut short.

    Raises
    ------
    AssertionError
        Something wrong was given, or an error is not as it should be.
    """
    shutil.copytree(source.directory, work / "a")
    files = [file for file in (work / "a" / DATABASE_NAME, work / "a" / LOG_NAME) if file.exists()]
    file = rng.choice([one for one in files if one.stat().st_size])
    done = damage(file, rng)
    shutil.copytree(work / "a", work / "b")
    try:
        outcome = _outcome(source, work / "a", in_log=file.name == LOG_NAME, cut=done.cut)
        if outcome in ("refused", "reported"):
            assert _names_damage(work / "b"), "ccq check finds nothing"
    except Exception as error:
        raise AssertionError(f"{source.directory.name}: {done.what}: {error!r}") from error
    finally:
        shutil.rmtree(work / "a")
        shutil.rmtree(work / "b")
    return outcome


def _outcome(source: Source, data: Path, *, in_log: bool, cut: bool) -> str:
    with _no_tracebacks():
        try:
            service = InProcess(data)
        except StartError as error:
            if "\n" in str(error):
                raise AssertionError(f"more than a line: {error}") from error
            return "refused"
        try:
            _wait(service)
        except BaseException:
            service.close()
            raise
    try:
        return _compare(Client(service), source.history, in_log=in_log, cut=cut)
    finally:
        service.close()


def _compare(client: Client, history: list[Facts], *, in_log: bool, cut: bool) -> str:
    """Each part of what is held is that of one moment, or is reported."""
    # One write that stands behind damage is taken for one that was cut short, and the damage may cover some more.
    states = history if cut and in_log else history[-4:] if in_log else history[-1:]
    reported = False
    parts: list[tuple[tuple[str, ...], Facts]] = []
    try:
        parts.append((("model",), served_models(client)))
    except Refused as error:
        _refuse_others(error)
        reported = True
    names = served_names(client)
    states = [state for state in states if sorted(names) == sorted(key[1] for key in state if key[0] == "collection")]
    for name in names:
        try:
            parts.append(((name,), served_collection(client, name)))
        except Refused as error:
            _refuse_others(error)
            reported = True
            states = [state for state in states if _items_are_of(client, name, state)]
    for (what,), facts in parts:
        states = [
            state
            for state in states
            if same(
                facts, {key: value for key, value in state.items() if what in (key[0], key[1]) and _part(key) == what}
            )
        ]
    assert states, "what is given was never acknowledged"
    if reported:
        return "reported"
    return "whole" if history[-1] in states else "older"


def _refuse_others(error: Refused) -> None:
    """Raise it unless it reports damage."""
    if error.code not in _REPORTED:
        raise error


def _part(key: tuple[str, ...]) -> str:
    return "model" if key[0] == "model" else key[1]


def _items_are_of(client: Client, name: str, state: Facts) -> bool:
    """Whether each item alone is what it was, or is reported."""
    for key, (payload, _) in [(key, value) for key, value in state.items() if key[:2] == ("item", name)]:
        reply = client.get(f"/collections/{name}/items/{key[2]}")
        if reply.status_code == 200:
            if reply.json()["payload"] != payload:
                return False
        elif reply.json()["code"] not in _REPORTED:
            return False
    return True


def _names_damage(data: Path) -> bool:
    try:
        return any(part.faults for part in check(data))
    except StartError:
        return True


def _wait(service: InProcess) -> None:
    for _ in range(2000):
        if all(entry.collection is not None or entry.failure is not None for entry in service.catalog.entries()):
            return
        service.run(asyncio.sleep(0.002))
    raise AssertionError("still loading")


@contextmanager
def _no_tracebacks() -> Any:
    """AssertionError if anything is logged with a traceback meanwhile."""
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info:
                found.append(f"{record.getMessage()} {record.exc_info[1]!r}")

    handler = Handler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    assert not found, found


def run(directory: Path, trials: int, seed: int) -> tuple[Counter[str], list[str]]:
    """So many trials: how many had which outcome, and what was wrong."""
    rng = random.Random(seed)
    sources = make_sources(directory, rng)
    outcomes: Counter[str] = Counter()
    wrong = []
    for number in range(trials):
        try:
            outcomes[trial(rng.choice(sources), directory, random.Random(f"{seed}-{number}"))] += 1
        except AssertionError as error:
            wrong.append(f"trial {number}: {error}")
    return outcomes, wrong


def main() -> int:
    """Run it by hand."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    given.data.mkdir(parents=True)
    logging.getLogger().addHandler(logging.NullHandler())
    outcomes, wrong = run(given.data, given.trials, given.seed)
    for line in wrong:
        print(line)
    print(f"seed {given.seed}: " + ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
