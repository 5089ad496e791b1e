"""Load on a real server: errors, latencies, throughput, and whether its memory stays flat.

    python -m tests.campaigns.load --seconds 120 --connections 64

Ends with status 1 if a request failed, or if memory grew by more than a tenth after the first quarter of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tests.service.harness import MODEL_FILE, ServerProcess, features, item

KINDS = ("search", "filter", "index", "delete")
SHARES = (65, 15, 15, 5)
IDS = 20_000
_BATCH = 10
_ALLOWED_GROWTH = 1.1
# Caches that fill for minutes would be taken for growth. What they may take is theirs by setting, and not much here.
_CACHES = {"CCQ_PAGE_CACHE_BYTES": str(4 << 20), "CCQ_FILTER_CACHE_BYTES": "0"}


def a_request(kind: str, rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Path and body of a random request."""
    if kind == "index":
        first = rng.randrange(IDS)
        return "/index", {"items": [item((first + i) % IDS, tag=rng.randrange(50)) for i in range(_BATCH)]}
    if kind == "delete":
        return "/items/delete", {"ids": [f"item-{rng.randrange(IDS)}" for _ in range(_BATCH)]}
    body = {"query": features(rng.randrange(400)), "database": rng.choice(["image", "text", "pair"]), "limit": 10}
    if kind == "filter":
        body["filter"] = {"must": [{"key": "tag", "match": {"value": rng.randrange(50)}}]}
    return "/search", body


class Load:
    """Connections that send one request after the other until the time is over.

    Attributes
    ----------
    taken:
        Seconds of each request, by kind.
    failures:
        How often which status or error came that is no success, or was logged by the server.
    """

    def __init__(self, url: str, end: float) -> None:
        self.taken: dict[str, list[float]] = defaultdict(list)
        self.failures: Counter[str] = Counter()
        self._url = url
        self._end = end

    async def run(self, connections: int) -> None:
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        async with httpx.AsyncClient(base_url=self._url, timeout=60, limits=limits) as client:
            await asyncio.gather(*(self._connection(client, random.Random(number)) for number in range(connections)))

    async def _connection(self, client: httpx.AsyncClient, rng: random.Random) -> None:
        while time.monotonic() < self._end:
            (kind,) = rng.choices(KINDS, SHARES)
            path, body = a_request(kind, rng)
            start = time.perf_counter()
            try:
                reply = await client.post(path, json=body)
            except httpx.HTTPError as error:
                self.failures[f"{kind}: {type(error).__name__}"] += 1
                continue
            self.taken[kind].append(time.perf_counter() - start)
            if reply.status_code != 200:
                self.failures[f"{kind}: {reply.status_code} {reply.json().get('code')}"] += 1


async def _watch(process: int, seconds: float, every: float) -> list[float]:
    """Resident MiB of a process, again and again."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(every)
        status = Path(f"/proc/{process}/status").read_text()  # noqa: ASYNC240 (not from a disk)
        found.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
    return found


def run(data: Path, seconds: float, connections: int) -> tuple[Load, list[float]]:
    """Load for so long: what came of it, and the server's memory meanwhile."""
    log = data.with_name(f"{data.name}.log")
    server = ServerProcess(data, stderr=log, **_CACHES)
    try:
        assert server.client.put("/models/tiny", content=MODEL_FILE).status_code == 201
        assert server.client.put("/collections/default", json={"model": "tiny", "indexes": ["tag"]}).status_code == 201
        for first in range(0, IDS, 1000):
            items = [item(i, tag=i % 50) for i in range(first, first + 1000)]
            assert server.client.post("/index", json={"items": items}).status_code == 200
        load = Load(server.url, time.monotonic() + seconds)

        async def both() -> list[float]:
            memory, _ = await asyncio.gather(_watch(server.process.pid, seconds, seconds / 40), load.run(connections))
            return memory

        memory = asyncio.run(both())
        assert server.stop() == 0
        load.failures.update(line.partition(" ERROR ")[2] for line in log.read_text().splitlines() if " ERROR " in line)
        return load, memory
    finally:
        server.kill()


def growth(memory: list[float]) -> float:
    """Memory in the last eighth of the time against that at the end of the first quarter."""
    eighth = max(len(memory) // 8, 1)
    return float(np.median(memory[-eighth:]) / np.median(memory[eighth : 2 * eighth]))


def main() -> int:
    """Run it by hand."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--connections", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        load, memory = run(Path(directory) / "data", given.seconds, given.connections)
    for kind, taken in sorted(load.taken.items()):
        half, most = np.percentile(taken, [50, 99]) * 1e3
        print(f"{kind}: {len(taken) / given.seconds:.0f}/s, p50 {half:.1f} ms, p99 {most:.1f} ms")
    print(f"all: {sum(map(len, load.taken.values())) / given.seconds:.0f}/s; failures: {dict(load.failures) or 'none'}")
    print(
        f"memory: start {memory[0]:.0f}, middle {memory[len(memory) // 2]:.0f}, end {memory[-1]:.0f} MiB, "
        f"{growth(memory):.3f} times that after the first quarter"
    )
    return 1 if load.failures or growth(memory) > _ALLOWED_GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
