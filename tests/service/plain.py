"""What searches mean, written plainly: all rows in a list, sorted, and cut in Python."""

import json

import numpy as np

from ccq_core.scan import scan
from service.store.snapshot import SQLiteSnapshot
from tests.service.harness import MODEL, item

DATABASES = ["image", "text", "pair"]
KINDS = [("image",), ("text",), ("image", "text")]
TAGS = [None, "red", "blue", True, 1, 1.0, ["red", "blue"], ["blue", ["green", "blue"]], [], {"red": 1}, "é🐈", 0]


def fill_with_ties(service, n=60):
    """Items of all kinds and tags, many with the same codes."""
    service.ok("POST", "/index", {"items": [tied_item(i) for i in range(n)]})


def tied_item(i):
    """The i-th item of `fill_with_ties`: one of eight objects."""
    tag = TAGS[i % len(TAGS)]
    payload = {"n": i, "even": i % 2 == 0, **({} if i % 7 == 3 else {"tag": tag})}
    return {**item(i % 8, *KINDS[i % 3]), "id": f"item-{i}", "payload": payload}


def damage(monkeypatch, item_id):
    """From now on the stored payload of an item is no JSON."""
    for name in ("scan", "texts"):
        monkeypatch.setattr(SQLiteSnapshot, name, _damaged(getattr(SQLiteSnapshot, name), item_id))


def _damaged(read, item_id):
    def damaged(*rest):
        for seq, found, payload in read(*rest):
            yield seq, found, b'{"n":' if found == item_id and payload is not None else payload

    return damaged


def latents(query):
    """Latent vector (1, D) of the features in a request."""
    return MODEL.project({name: np.array([vector], dtype=np.float32) for name, vector in query.items()})


class Plain:
    """A collection as lists: what the service holds, for the plain search."""

    def __init__(self, service, collection="default"):
        held = service.catalog.collection(collection)
        with held.read() as (view, snapshot):
            self.rows = {name: table.arrays() for name, table in view.tables.items()}
            stored = list(snapshot.scan(True))
        self.ids = {seq: item_id for seq, item_id, _ in stored}
        self.payloads = {item_id: None if payload is None else json.loads(payload) for _, item_id, payload in stored}

    def point(self, item_id):
        """Latent vector (1, D) of a stored item."""
        for name in ("pair", "image", "text"):
            labels, codes = self.rows[name]
            for label, code in zip(labels.tolist(), codes, strict=True):
                if self.ids[label] == item_id:
                    return MODEL.decode(code[None])
        raise KeyError(item_id)

    def search(self, latent, databases, metric, *, holds=lambda payload: True, leave_out=()):
        """All hits, best first, as a reply shows them; with their place in the order as `order`."""
        tables = MODEL.distance_tables_latent(latent, metric=metric)
        hits = []
        for position, name in enumerate(databases):
            labels, codes = self.rows[name]
            keys = scan(tables, 0, codes)
            (distances,) = tables.distances(keys[None])
            for label, key, distance in zip(labels.tolist(), keys.tolist(), distances, strict=True):
                score = np.float32(1) - distance if metric == "cosine" else -distance
                item_id = self.ids[label]
                hit = {"id": item_id, "database": name, "distance": written(distance), "score": written(score)}
                hit |= {"payload": self.payloads[item_id], "order": (key, label, position)}
                if item_id not in leave_out and holds(hit["payload"]):
                    hits.append(hit)
        return sorted(hits, key=lambda hit: hit["order"])


def written(number):
    """A float32 as it is read from JSON."""
    return float(str(np.float32(number))) + 0.0


def shown(hits):
    """Hits of the plain search as a reply has them."""
    return [{key: value for key, value in hit.items() if key != "order"} for hit in hits]


def leaves(value):
    """A value, or the elements of an array and of the arrays in it; objects are none."""
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [] if isinstance(value, dict) else [value]


def groups(hits, key, size):
    """All groups of hits by the value of a top-level key, the one with the best hit first."""
    found = []
    for hit in hits:
        if key not in hit["payload"]:
            continue
        seen = []
        for leaf in leaves(hit["payload"][key]):
            if any(same(leaf, other) for other in seen):
                continue
            seen.append(leaf)
            for value, members in found:
                if same(value, leaf):
                    members.append(hit)
                    break
            else:
                found.append((leaf, [hit]))
    return [{"key": value, "hits": shown(members[:size])} for value, members in found]


def same(a, b):
    return isinstance(a, bool) == isinstance(b, bool) and a == b
