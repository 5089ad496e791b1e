"""kill -9 at random moments of writing: what was acknowledged is there, the rest wholly or not at all.

    python -m tests.campaigns.kills --kills 500 --data DIR

DIR is made, and must not exist. Ends with status 1 if anything was lost, torn or refused.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from service.store.check import check
from tests.campaigns.facts import CHECKSUM, Facts, same, served
from tests.campaigns.writers import SHARED, Writer
from tests.service.harness import MODEL_FILE, ServerProcess

WRITERS = 4
CHECK_EVERY = 10
SHARED_IS = {"model": "tiny", "indexes": ["n"], "keep": "float16"}


@dataclass
class Report:
    """Figures of a campaign.

    Attributes
    ----------
    acknowledged:
        Writes that were answered.
    unanswered, carried_out:
        Writes that a kill left without an answer, and how many of them were found carried out.
    lost:
        Acknowledged facts (items, collections, models) that were missing or others after a restart.
    torn:
        Unanswered writes that were found carried out in part.
    jobs, jobs_cut, jobs_carried_out:
        Background jobs that were told to be done, that were found unfinished after a kill, and that did what they were
        to do without anybody having been told before the kill.
    faults:
        Whatever else was wrong: a contradiction within a server, a refusal, a fault that `ccq check` names.
    """

    kills: int = 0
    starts: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    carried_out: int = 0
    checks: int = 0
    lost: int = 0
    torn: int = 0
    jobs: int = 0
    jobs_cut: int = 0
    jobs_carried_out: int = 0
    faults: int = 0

    @property
    def clean(self) -> bool:
        """Nothing is wrong."""
        return self.lost == self.torn == self.faults == 0

    def __str__(self) -> str:
        return ", ".join(f"{field.name.replace('_', ' ')} {getattr(self, field.name)}" for field in fields(self))


class Campaign:
    """Starts a server, writes, kills it, and looks at what is left, again and again.

    Parameters
    ----------
    data:
        Data directory, which does not exist yet.
    seed:
        Of all that is random, except the moments at which the operating system lets threads run.
    tell:
        Called with a line for each thing that is wrong.
    """

    def __init__(self, data: Path, seed: int, tell: Callable[[str], None]) -> None:
        self.report = Report()
        self._data = data
        self._log = data.with_name(f"{data.name}.log")
        self._rng = random.Random(seed)
        self._writers = [Writer(number, random.Random(f"{seed}-{number}")) for number in range(WRITERS)]
        self._others: Facts = {("model", "tiny"): CHECKSUM, ("collection", SHARED): ("tiny", ("n",))}
        self._tell = tell

    def run(self, kills: int) -> Report:
        """So many kills while writers write, and a server that ends in order.

        Raises
        ------
        AssertionError
            A server contradicts itself, so that no more can be compared.
        """
        with self._server() as server:
            assert server.client.put("/models/tiny", content=MODEL_FILE).status_code == 201
            made = server.client.put(f"/collections/{SHARED}", json=SHARED_IS)
            assert made.status_code == 201, made.text
            self._prepare(server)
        for turn in range(kills):
            with self._server() as server:
                server.wait_until_ready()
                self._compare(server)
                self._write_and_kill(server)
            if self._rng.random() < 0.1:
                with self._server():  # killed while it loads
                    time.sleep(self._rng.uniform(0, 0.02))
                self.report.kills += 1
            if turn % CHECK_EVERY == CHECK_EVERY - 1:
                self._check()
        with self._server() as server:
            server.wait_until_ready()
            self._compare(server)
            if server.stop():
                self._wrong("a server that was told to stop ended with another status than 0")
        self._check()
        if logged := self._log.read_text():
            self._wrong(f"logged: {logged}")
        return self.report

    @contextmanager
    def _server(self) -> Iterator[ServerProcess]:
        """A server that has ended in the end, one way or the other."""
        server = ServerProcess(self._data, stderr=self._log, first=self._first(), CCQ_SEARCH_THREADS="2")
        self.report.starts += 1
        try:
            yield server
        finally:
            server.kill()

    def _first(self) -> str:
        """What the next server does before it starts, in Python."""
        return "pass"

    def _prepare(self, server: ServerProcess) -> None:
        """For what else is to be tried: called once, before everything."""

    def _served(self, server: ServerProcess) -> Facts:
        """What a server holds."""
        return served(server.client)

    def _beside(self, server: ServerProcess) -> list[threading.Thread]:
        """Threads that do something else while writers write, until the server is gone."""
        return []

    def _write_and_kill(self, server: ServerProcess) -> None:
        threads = [threading.Thread(target=self._write, args=(writer, server.url)) for writer in self._writers]
        threads += self._beside(server)
        # So many writes, however fast the machine is, and then some part of one.
        writes, pause = self._rng.choice([1, 4, 30]) + self._rng.randrange(10), self._rng.uniform(0, 0.02)
        for thread in threads:
            thread.start()
        while sum(writer.acknowledged for writer in self._writers) < writes and any(
            map(threading.Thread.is_alive, threads)
        ):
            time.sleep(0.001)
        time.sleep(pause)
        server.process.kill()
        for thread in threads:
            thread.join()
        self.report.kills += 1
        self.report.acknowledged += sum(writer.acknowledged for writer in self._writers)
        for writer in self._writers:
            writer.acknowledged = 0

    def _write(self, writer: Writer, url: str) -> None:
        try:
            writer.run(url)
        except AssertionError as error:
            self._wrong(str(error))

    def _compare(self, server: ServerProcess) -> None:
        """What the server holds against what each writer knows."""
        try:
            facts = self._served(server)
        except AssertionError as error:
            self._wrong(f"a server contradicts itself: {error}")
            raise
        for writer in self._writers:
            found = {key: value for key, value in facts.items() if writer.owns(key)}
            self._compare_writer(writer, found)
            facts = {key: value for key, value in facts.items() if key not in found}
        if facts != self._others:
            self._wrong(f"{facts} instead of {self._others}")

    def _compare_writer(self, writer: Writer, found: Facts) -> None:
        write, writer.pending = writer.pending, None
        known, writer.facts = writer.facts, found
        self.report.unanswered += write is not None
        if same(found, known):
            return
        if write is not None and same(found, write.after):
            self.report.carried_out += 1
            return
        after = known if write is None else write.after
        touched = {key for key in known.keys() | after.keys() if known.get(key) != after.get(key)}
        lost = [key for key in known if key not in touched and found.get(key) != known[key]]
        self.report.lost += len(lost)
        self.report.torn += write is not None
        sent = f"{write.method} {write.path}" if write else "nothing"
        self._wrong(f"writer {writer.number}: {sent} was pending; lost {lost}; found {found}, not {known}")

    def _check(self) -> None:
        self.report.checks += 1
        for part in check(self._data):
            for fault in part.faults:
                self._wrong(f"ccq check: {part.name}: {fault}")

    def _wrong(self, what: str) -> None:
        self.report.faults += 1
        self._tell(what)


def main(campaign: type[Campaign], description: str) -> int:
    """Run it by hand."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    if given.data.exists():
        parser.error(f"{given.data} exists")
    print(f"seed {given.seed}", flush=True)
    report = campaign(given.data, given.seed, lambda line: print(line, flush=True)).run(given.kills)
    print(report)
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main(Campaign, __doc__))
