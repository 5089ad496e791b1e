"""Random requests, with restarts in between, against a plain model of what a collection is."""

import logging
import random

import numpy as np
import pytest

from ccq_core import CodeIndex
from tests.service.harness import MODEL, PAIRS, InProcess, features, item

DATABASES = ("image", "text", "pair")
KINDS = [("image",), ("text",), ("image", "text")]
NAMES = 30


class Plain:
    """A collection as a dict in order of insertion: id to (payload, code rows by database)."""

    def __init__(self):
        self.items = {}

    def index(self, batch):
        """`batch`: triples of number, kinds, payload. Encoded as one batch, as the service does."""
        rows = [{} for _ in batch]
        for database in DATABASES:
            members = [
                at
                for at, (_, kinds, _) in enumerate(batch)
                if database in kinds or (database == "pair" and len(kinds) > 1)
            ]
            if members:
                numbers = [batch[at][0] % 400 for at in members]
                names = ("image", "text") if database == "pair" else (database,)
                codes = MODEL.encode({name: PAIRS[name][numbers] for name in names})
                for at, code in zip(members, codes, strict=True):
                    rows[at][database] = code
        for (number, _, payload), codes in zip(batch, rows, strict=True):
            item_id = f"item-{number % NAMES}"
            self.items.pop(item_id, None)
            self.items[item_id] = (payload, codes)

    def delete(self, ids):
        return len([self.items.pop(item_id) for item_id in dict.fromkeys(ids) if item_id in self.items])

    def search(self, query, database, limit, metric, holds):
        members = [
            (item_id, codes[database])
            for item_id, (payload, codes) in self.items.items()
            if database in codes and holds(payload)
        ]
        index = CodeIndex(MODEL)
        if members:
            index.add([item_id for item_id, _ in members], np.array([code for _, code in members]))
        hits = index.search(query, limit, metric=metric)
        return list(zip(hits.ids[0].tolist(), hits.distances[0].tolist(), strict=True))


def step(rng, service, plain):
    action = rng.choice(["index"] * 4 + ["delete", "delete_one", "delete_where"] + ["search"] * 5 + ["list", "restart"])
    if action == "index":
        numbers = rng.sample(range(NAMES), rng.randint(1, 6))
        batch = [(n + NAMES * rng.randrange(10), rng.choice(KINDS), {"n": n, "odd": n % 2}) for n in numbers]
        body = [
            {"id": f"item-{n % NAMES}", "features": features(n, *kinds), "payload": payload}
            for n, kinds, payload in batch
        ]
        assert service.ok("POST", "/index", {"items": body})["indexed"] == len(body)
        plain.index(batch)
    elif action == "delete":
        ids = [f"item-{rng.randrange(NAMES + 3)}" for _ in range(rng.randint(0, 4))]
        assert service.ok("POST", "/items/delete", {"ids": ids})["deleted"] == plain.delete(ids)
    elif action == "delete_one":
        item_id = f"item-{rng.randrange(NAMES)}"
        assert service.delete(f"/items/{item_id}").status_code == (204 if plain.delete([item_id]) else 404)
    elif action == "delete_where":
        bound = rng.randrange(NAMES)
        condition = {"must": [{"key": "n", "range": {"gte": bound, "lt": bound + 3}}]}
        ids = [item_id for item_id, (payload, _) in plain.items.items() if bound <= payload["n"] < bound + 3]
        assert service.ok("POST", "/items/delete", {"filter": condition})["deleted"] == plain.delete(ids)
    elif action == "search":
        search(rng, service, plain)
    elif action == "list":
        found = service.get("/items", params={"limit": 1000}).json()["items"]
        want = [(item_id, payload, set(codes)) for item_id, (payload, codes) in plain.items.items()]
        assert [(one["id"], one["payload"], set(one["databases"])) for one in found] == want
    else:
        service.restart()


def search(rng, service, plain):
    number, kinds, database = rng.randrange(400), rng.choice(KINDS), rng.choice(DATABASES)
    metric, limit, odd = rng.choice(["cosine", "euclidean"]), rng.randint(1, 12), rng.choice([None, 0, 1])
    body = {"query": features(number, *kinds), "database": database, "limit": limit, "metric": metric}
    if odd is not None:
        body["filter"] = {"must": [{"key": "odd", "match": {"value": odd}}]}
    query = {name: PAIRS[name][[number]] for name in kinds}
    want = plain.search(query, database, limit, metric, lambda payload: odd is None or payload["odd"] == odd)
    hits = service.ok("POST", "/search", body)["results"]
    assert [(hit["id"], np.float32(hit["distance"])) for hit in hits] == want


@pytest.mark.parametrize("seed", range(6))
def test_random_operations(tmp_path, caplog, seed):
    rng = random.Random(seed)
    service = InProcess(tmp_path / "data")
    try:
        service.create()
        plain = Plain()
        for _ in range(120):
            step(rng, service, plain)
        assert service.ok("GET", "/collections/default")["items"] == len(plain.items)
        told = [record for record in caplog.records if record.name != "service.slow"]  # as on a busy machine
        assert [record for record in told if record.levelno >= logging.WARNING] == []  # no loading again
    finally:
        service.close()


def test_the_plain_model_tells_items_apart():
    plain = Plain()
    plain.index([(0, ("image",), {"n": 0}), (1, ("image", "text"), {"n": 1})])
    assert list(plain.items["item-0"][1]) == ["image"]
    assert list(plain.items["item-1"][1]) == ["image", "text", "pair"]
    query = {"image": PAIRS["image"][[1]]}
    assert len(plain.search(query, "image", 5, "cosine", lambda _: True)) == 2
    assert len(plain.search(query, "pair", 5, "cosine", lambda _: True)) == 1
    assert item(1)["features"]["image"] == features(1)["image"]
