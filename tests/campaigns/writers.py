"""Writers that each own some ids and names, so that each knows what a server should hold of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from tests.campaigns.facts import CHECKSUM, Facts, ids, item_facts, without
from tests.service.harness import MODEL_FILE
from tests.service.plain import KINDS
from tests.service.reencoded import thing

SHARED = "default"
_IDS = 60
_INDEXES: list[list[str]] = [[], ["n"], ["n", "write"], ["write"]]


@dataclass(frozen=True)
class Write:
    """A request, and what holds once it is carried out."""

    method: str
    path: str
    body: Any
    after: Facts


class Writer:
    """Writes at random, and keeps what holds.

    Attributes
    ----------
    facts:
        What was acknowledged, of all that this writer owns.
    pending:
        What was sent and not answered.
    acknowledged:
        How many writes were.
    """

    def __init__(self, number: int, rng: random.Random) -> None:
        self.number = number
        self.facts: Facts = {}
        self.pending: Write | None = None
        self.acknowledged = 0
        self._own = f"own-{number}"
        self._rng = rng
        self._turn = 0

    def owns(self, key: tuple[str, ...]) -> bool:
        """Whether a fact is this writer's."""
        return key[1] == self._own or (key[:2] == ("item", SHARED) and key[2].startswith(f"{self.number}-"))

    def run(self, url: str) -> None:
        """Write until the server is gone.

        Raises
        ------
        AssertionError
            It answered with an error.
        """
        with httpx.Client(base_url=url, timeout=60) as client, suppress(httpx.TransportError):
            while True:
                self.write(client)

    def write(self, client: Any) -> None:
        """Write once; raises what `run` raises, and what the client does."""
        write = self.pending = self._next()
        content = {"content": write.body} if isinstance(write.body, bytes) else {"json": write.body}
        reply = client.request(write.method, write.path, **({} if write.body is None else content))
        assert reply.is_success, f"{write.method} {write.path}: {reply.status_code} {reply.text}"
        self.facts, self.pending = write.after, None
        self.acknowledged += 1

    def _next(self) -> Write:
        self._turn += 1
        collection = self._rng.choice([SHARED, SHARED, self._own])
        if ("collection", self._own) not in self.facts and collection == self._own:
            return self._create()
        kinds: list[Callable[[str], Write]] = [self._index, self._delete_ids, self._delete_where, self._change]
        return self._rng.choices(kinds, [10, 2, 2, 1])[0](collection)

    def _index(self, collection: str) -> Write:
        numbers = self._rng.sample(range(_IDS), self._rng.choice([1, 2, 5, 20, 40]))
        items = []
        for n in numbers:
            payload = {"same": n, "write": self._turn, "fill": "x" * self._rng.choice([0, 10, 3000])}
            made = thing(n, *self._rng.choice(KINDS), **payload)
            items.append({**made, "id": f"{self.number}-{n}"})
        new = item_facts(collection, items)
        kept = {key: value for key, value in self.facts.items() if key not in new}
        return Write("POST", f"/collections/{collection}/index", {"items": items}, kept | new)

    def _delete_ids(self, collection: str) -> Write:
        gone = {f"{self.number}-{n}" for n in self._rng.sample(range(_IDS), self._rng.randint(1, 15))}
        return self._delete(collection, {"ids": sorted(gone)}, gone)

    def _delete_where(self, collection: str) -> Write:
        least = self._rng.randrange(_IDS)
        numbers = range(least, least + self._rng.randint(1, 15))
        bounds = {"gte": numbers.start, "lt": numbers.stop}
        mine = {"ids": [f"{self.number}-{n}" for n in range(_IDS)]}
        key = self._rng.choice(["n", "same"])
        return self._delete(
            collection,
            {"filter": {"must": [{"key": key, "range": bounds}, mine]}},
            {f"{self.number}-{n}" for n in numbers},
        )

    def _delete(self, collection: str, body: Any, gone: set[str]) -> Write:
        after = {
            key: value for key, value in self.facts.items() if key[:2] != ("item", collection) or key[2] not in gone
        }
        return Write("POST", f"/collections/{collection}/items/delete", body, after)

    def _create(self) -> Write:
        if ("model", self._own) not in self.facts:
            return Write("PUT", f"/models/{self._own}", MODEL_FILE, self.facts | {("model", self._own): CHECKSUM})
        if self._rng.random() < 0.2:
            return Write("DELETE", f"/models/{self._own}", None, without(self.facts, "model", self._own))
        return self._put_indexes()

    def _change(self, _collection: str) -> Write:
        """Something about the writer's own collection as a whole."""
        if ("collection", self._own) not in self.facts:
            return self._create()
        if ids(self.facts, self._own) and self._rng.random() < 0.3:
            after = without(without(self.facts, "collection", self._own), "item", self._own)
            return Write("DELETE", f"/collections/{self._own}", None, after)
        return self._put_indexes()

    def _put_indexes(self) -> Write:
        indexes = self._rng.choice(_INDEXES)
        after = self.facts | {("collection", self._own): (self._own, tuple(sorted(indexes)))}
        return Write("PUT", f"/collections/{self._own}", {"model": self._own, "indexes": indexes}, after)
