"""What a server should hold, as plain facts: keys and values that can be compared with what it says that it holds.

``("model", name)``: its checksum. ``("collection", name)``: its model and its indexes. ``("item", collection, id)``:
the payload, and in each of its databases the distance to `PROBE`, by which codes are told apart. Items are in order of
insertion.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from ccq_core import CCQ
from ccq_core.distances import DistanceTables
from ccq_core.scan import scan
from service.encoding import encode_items
from service.features import read_vectors
from tests.service.harness import MODEL, MODEL_FILE, features
from tests.service.plain import DATABASES, written

Key = tuple[str, ...]
Facts = dict[Key, Any]

PROBE = features(7)
CHECKSUM = hashlib.sha256(MODEL_FILE).hexdigest()
_PAGE = 200


def item_facts(collection: str, items: list[dict[str, Any]], model: CCQ = MODEL) -> Facts:
    """Facts of items that are indexed by one request, encoded together as the service does."""
    vectors = read_vectors([one["features"] for one in items], lambda i: (i,), model, "model")
    codes = encode_items(vectors, model)
    tables = _tables(model)
    near: list[dict[str, float]] = [{} for _ in items]
    for i, database in enumerate(DATABASES):
        rows = codes.present[:, i].nonzero()[0]
        if len(rows):
            (distances,) = tables.distances(scan(tables, 0, codes.rows[rows, i])[None])
            for row, distance in zip(rows.tolist(), distances, strict=True):
                near[row][database] = written(distance)
    return {("item", collection, one["id"]): (one["payload"], found) for one, found in zip(items, near, strict=True)}


@cache
def _tables(model: CCQ) -> DistanceTables:
    """Distances to `PROBE`, as a search measures them by itself."""
    return model.distance_tables({name: np.array([vector], dtype=np.float32) for name, vector in PROBE.items()})


def without(facts: Facts, *prefix: str) -> Facts:
    """The facts less those whose keys begin so."""
    return {key: value for key, value in facts.items() if key[: len(prefix)] != prefix}


def ids(facts: Facts, collection: str) -> list[str]:
    """Ids of a collection's items, in order of insertion."""
    return [key[2] for key in facts if key[:2] == ("item", collection)]


def same(one: Facts, other: Facts) -> bool:
    """Equal, and items of each collection in the same order."""
    collections = {key[1] for key in one if key[0] == "item"}
    return one == other and all(ids(one, name) == ids(other, name) for name in collections)


class Refused(AssertionError):
    """A server answered with a problem; `code` is its code."""

    def __init__(self, reply: Any) -> None:
        super().__init__(f"{reply.request.url}: {reply.text}")
        self.code = reply.json()["code"]


def served(client: Any) -> Facts:
    """All that a server holds; raises what `served_models` and `served_collection` raise."""
    facts = served_models(client)
    for name in served_names(client):
        facts |= served_collection(client, name)
    return facts


def served_models(client: Any) -> Facts:
    """Facts about models; Refused."""
    return {("model", one["name"]): one["checksum"] for one in _get(client, "/models")["models"]}


def served_names(client: Any) -> list[str]:
    """Names of the collections; Refused."""
    return [info["name"] for info in _get(client, "/collections")["collections"]]


def served_collection(client: Any, name: str) -> Facts:
    """Facts about a collection and its items, by listings and by searches through every row of codes.

    Raises
    ------
    AssertionError
        Listings, counts, searches and filters contradict each other.
    Refused
        There is no answer.
    """
    items = _listed(client, name)
    info = _get(client, f"/collections/{name}")
    assert info["state"] == "ready", info
    near = _near(client, name, len(items))
    assert near.keys() <= items.keys(), near.keys() - items.keys()
    facts: Facts = {("collection", name): (info["model"], tuple(info["indexes"]))}
    for item_id, (payload, databases) in items.items():
        assert databases == list(near.get(item_id, ())), (item_id, databases, near.get(item_id))
        facts["item", name, item_id] = (payload, near[item_id])
    rows = {database: sum(database in found for found in near.values()) for database in info["databases"]}
    assert (info["items"], info["databases"]) == (len(items), rows), info
    _compare_filters(client, name, items)
    return facts


def _listed(client: Any, collection: str) -> dict[str, tuple[Any, list[str]]]:
    found, query = {}, {"limit": _PAGE}
    while True:
        page = _get(client, f"/collections/{collection}/items", query)
        for one in page["items"]:
            assert one["id"] not in found, f"{one['id']} is listed twice"
            found[one["id"]] = (one["payload"], one["databases"])
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


def _near(client: Any, collection: str, items: int) -> dict[str, dict[str, float]]:
    body = {"query": PROBE, "database": list(DATABASES), "with_payload": False, "limit": 3 * items + 10}
    hits = _post(client, f"/collections/{collection}/search", body)["results"]
    assert [hit["distance"] for hit in hits] == sorted(hit["distance"] for hit in hits)
    near: dict[str, dict[str, float]] = {}
    for hit in sorted(hits, key=lambda hit: DATABASES.index(hit["database"])):
        found = near.setdefault(hit["id"], {})
        assert hit["database"] not in found, f"{hit} comes twice"
        found[hit["database"]] = hit["distance"]
    return near


def _compare_filters(client: Any, collection: str, items: dict[str, tuple[Any, list[str]]]) -> None:
    """A filter by the key `n`, which mostly is indexed, finds what one by `same` does, which never is."""
    want = [item_id for item_id, (payload, _) in items.items() if 10 <= payload["n"] < 40]
    for key in ("n", "same"):
        bounds = {"must": [{"key": key, "range": {"gte": 10, "lt": 40}}]}
        body = {"query": PROBE, "database": list(DATABASES), "with_payload": False, "limit": 3 * len(items) + 10}
        hits = _post(client, f"/collections/{collection}/search", {**body, "filter": bounds})["results"]
        assert {hit["id"] for hit in hits} == set(want), (collection, key)
        counted = _post(client, f"/collections/{collection}/facets", {"key": "n", "filter": bounds})
        assert (counted["total"], counted["missing"]) == (len(want), 0), (collection, key)


def _get(client: Any, path: str, query: dict[str, Any] | None = None) -> Any:
    return _json(client.get(path, params=query))


def _post(client: Any, path: str, body: Any) -> Any:
    return _json(client.post(path, json=body))


def _json(reply: Any) -> Any:
    if reply.status_code != 200:
        raise Refused(reply)
    return reply.json()
