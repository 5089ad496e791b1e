"""Writers, deleters and searchers at the same time: all replies are those of some order, one request after the other.

Each batch of items has a mark, and each write of it a turn of its own. Whoever asks sees each batch as a whole, and all
batches of one moment; and an order is sought in which every request lies between its sending and its answer.
"""

import asyncio
import random
import time
from dataclasses import dataclass

import pytest

from tests.service.harness import features, item

MARKS = ("a", "b", "c")
BATCH = 12
CLIENTS = 6
REQUESTS = 40
DATABASES = ["image", "text", "pair"]


@dataclass(frozen=True)
class Done:
    """A request that was answered: from when to when, what it did to which mark, and what it saw.

    `turn`: what the batch is of from now on, None where it was deleted. `seen`: turns by mark, None where none is.
    """

    start: float
    end: float
    mark: str | None = None
    turn: int | None = None
    seen: tuple[tuple[str, int | None], ...] = ()


def in_order(requests):
    """Whether some order of the requests explains what they saw; nothing is there at the beginning."""
    requests = sorted(requests, key=lambda done: done.start)
    everything = (1 << len(requests)) - 1
    pending, known = [(0, (None,) * len(MARKS))], set()
    while pending:
        taken, state = pending.pop()
        if taken == everything:
            return True
        if (taken, state) in known:
            continue
        known.add((taken, state))
        left = [i for i in range(len(requests)) if not taken >> i & 1]
        first_end = min(requests[i].end for i in left)
        for i in left:
            done = requests[i]
            if done.start > first_end:
                break
            if all(state[MARKS.index(mark)] == turn for mark, turn in done.seen):
                after = state
                if done.mark is not None:
                    after = tuple(
                        done.turn if mark == done.mark else now for mark, now in zip(MARKS, state, strict=True)
                    )
                pending.append((taken | 1 << i, after))
    return False


def test_orders_are_told_apart():
    write = Done(0, 1, "a", 1)
    assert in_order([write, Done(2, 3, seen=(("a", 1),))])
    assert not in_order([write, Done(2, 3, seen=(("a", None),))])
    assert in_order([write, Done(0.5, 3, seen=(("a", None),))])
    other = Done(0, 1, "b", 2)
    ab, ba = (("a", 1), ("b", None)), (("a", None), ("b", 2))
    assert in_order([write, other, Done(0.5, 3, seen=ab)])
    assert not in_order([write, other, Done(0.1, 0.2, seen=ab), Done(0.3, 0.4, seen=ba)])


def items(mark, turn, rng):
    kinds = [("image",), ("text",), ("image", "text")]
    return [{**item(i, *rng.choice(kinds), mark=mark, turn=turn), "id": f"{mark}-{i}"} for i in range(BATCH)]


def whole(payloads):
    """The turn of each mark among some payloads, each of which is there as a whole or not at all."""
    seen = dict.fromkeys(MARKS)
    for mark in MARKS:
        turns = [payload["turn"] for payload in payloads if payload["mark"] == mark]
        assert len(turns) in (0, BATCH), (mark, turns)
        assert len(set(turns)) <= 1, (mark, turns)
        seen[mark] = turns[0] if turns else None
    return seen


class Client:
    """Sends random requests, one after the other."""

    def __init__(self, service, number, seed):
        self._client = service.client
        self._rng = random.Random(f"{seed}-{number}")
        self._number = number
        self.limit = 1000
        self.done = []

    async def run(self):
        for turn in range(REQUESTS):
            mark = self._rng.choice(MARKS)
            kind = self._rng.choice(
                [self._write, self._delete, self._search, self._search_all, self._list, self._count]
            )
            start = time.perf_counter()
            effect = await kind(mark, self._number * REQUESTS + turn)
            self.done.append(Done(start, time.perf_counter(), **effect))

    async def _call(self, method, path, body=None):
        reply = await self._client.request(method, path, **({} if body is None else {"json": body}))
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def _write(self, mark, turn):
        await self._call("POST", "/index", {"items": items(mark, turn, self._rng)})
        return {"mark": mark, "turn": turn}

    async def _delete(self, mark, _):
        if self._rng.random() < 0.5:
            body = {"filter": {"must": [{"key": "mark", "match": {"value": mark}}]}}
        else:
            body = {"ids": [f"{mark}-{i}" for i in range(BATCH)]}
        deleted = (await self._call("POST", "/items/delete", body))["deleted"]
        assert deleted in (0, BATCH)
        return {"mark": mark, "seen": () if deleted else ((mark, None),)}

    async def _search(self, mark, turn):
        only = {"must": [{"key": "mark", "match": {"value": mark}}]}
        body = {"query": features(turn), "database": DATABASES, "limit": self.limit, "filter": only}
        seen = whole(self._items((await self._call("POST", "/search", body))["results"]))
        return {"seen": ((mark, seen[mark]),)}

    async def _search_all(self, _, turn):
        body = {"query": features(turn), "database": DATABASES, "limit": self.limit}
        return {"seen": tuple(whole(self._items((await self._call("POST", "/search", body))["results"])).items())}

    @staticmethod
    def _items(hits):
        return {hit["id"]: hit["payload"] for hit in hits}.values()

    async def _list(self, _, __):
        listed = (await self._call("GET", "/items?limit=1000"))["items"]
        return {"seen": tuple(whole([one["payload"] for one in listed]).items())}

    async def _count(self, _, __):
        counted = await self._call("POST", "/facets", {"key": "turn", "limit": 100})
        assert {found["count"] for found in counted["values"]} <= {BATCH}
        assert counted["total"] == BATCH * len(counted["values"])
        marks = await self._call("POST", "/facets", {"key": "mark"})
        assert {found["count"] for found in marks["values"]} <= {BATCH}
        return {}


def run_together(service, clients):
    """What all clients did, at the same time."""

    async def run():
        await asyncio.gather(*(client.run() for client in clients))

    service.run(run())
    requests = [done for client in clients for done in client.done]
    assert len(requests) == len(clients) * REQUESTS
    return requests


@pytest.mark.parametrize("seed", range(3))
def test_some_order_explains_every_reply(service, seed):
    if seed % 2:
        service.ok("PUT", "/collections/default", {"model": "tiny", "indexes": ["mark"]})
    assert in_order(run_together(service, [Client(service, number, seed) for number in range(CLIENTS)]))
