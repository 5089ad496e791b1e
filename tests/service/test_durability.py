"""kill -9 in the middle of writing, many times: what was acknowledged is there, the rest whole or not at all."""

import random
import threading

import apsw
import httpx
import orjson

from service.encoding import encode_items
from service.features import read_vectors
from service.records import Layout
from service.store import segments
from service.store.interface import CollectionRecord
from service.store.sqlite import DATABASE_NAME
from tests.service.harness import MODEL, ServerProcess, item

KILLS = 25


def records(joined):
    """Code records, one by one."""
    size = Layout.of(MODEL).size
    return [joined[i : i + size] for i in range(0, len(joined), size)]


class Expected:
    """Items in order of insertion, as plain Python: id to (payload, code record)."""

    def __init__(self, items=None):
        self.items = dict(items or {})

    def after_index(self, items):
        after = Expected(self.items)
        vectors = read_vectors([found["features"] for found in items], lambda i: (i,), MODEL, "tiny")
        for found, record in zip(items, records(Layout.of(MODEL).pack(encode_items(vectors, MODEL))), strict=True):
            after.items.pop(found["id"], None)
            after.items[found["id"]] = (found["payload"], record)
        return after

    def after_delete(self, ids):
        gone = set(ids)
        return Expected({item_id: value for item_id, value in self.items.items() if item_id not in gone})


def random_write(rng, number, state):
    """The path and body of a request, and the state after it."""
    if state.items and rng.random() < 0.2:
        ids = rng.sample(list(state.items), min(len(state.items), rng.randint(1, 12)))
        return "/items/delete", {"ids": ids}, state.after_delete(ids)
    kinds = [("image",), ("text",), ("image", "text")]
    items = [item(i, *rng.choice(kinds), write=number) for i in rng.sample(range(300), rng.randint(1, 40))]
    return "/index", {"items": items}, state.after_index(items)


def on_disk(data):
    """Id to (payload, record), in order of insertion, without the service."""
    connection = apsw.Connection(str(data / DATABASE_NAME))
    try:
        assert connection.pragma("integrity_check") == "ok"
        codes = {}
        for seqs, data in segments.read(connection.cursor(), CollectionRecord(1, "default", "tiny")):
            codes |= zip(seqs.tolist(), records(data), strict=True)
        for (seq,) in connection.execute("SELECT seq FROM gone_1"):
            del codes[seq]
        rows = connection.execute("SELECT seq, id, payload FROM items_1 ORDER BY seq")
        found = {item_id: (orjson.loads(payload), codes.pop(seq)) for seq, item_id, payload in rows}
        assert not codes
        return found
    finally:
        connection.close()


def listed(server):
    items, query = [], {"limit": 200}
    while True:
        page = server.client.get("/items", params=query).json()
        items += [(found["id"], found["payload"]) for found in page["items"]]
        if page["next_cursor"] is None:
            return items
        query["cursor"] = page["next_cursor"]


def assert_serves(server, state):
    """The listing, the counts, and a search through every code row are those of the state."""
    assert listed(server) == [(item_id, payload) for item_id, (payload, _) in state.items.items()]
    codes = Layout.of(MODEL).unpack(b"".join(record for _, record in state.items.values()))
    info = server.client.get("/collections/default").json()
    assert list(info["databases"].values()) == codes.present.sum(axis=0).tolist()
    body = {"query": item(7)["features"], "database": ["image", "text", "pair"], "limit": 3000}
    hits = server.client.post("/search", json=body).json()["results"]
    assert sorted((hit["id"], hit["database"]) for hit in hits) == sorted(
        (item_id, database)
        for item_id, present in zip(state.items, codes.present, strict=True)
        for database, has in zip(("image", "text", "pair"), present, strict=True)
        if has
    )


def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(tmp_path, model_path):
    data = tmp_path / "data"
    rng = random.Random(20160717)
    state = Expected()
    acknowledged = unanswered = 0
    for kill in range(KILLS):
        server = ServerProcess(data, model_path)
        server.wait_until_ready()
        assert_serves(server, state)
        killing = threading.Timer(rng.uniform(0.0, 0.25), server.process.kill)
        killing.start()
        try:
            while True:
                path, body, after = random_write(rng, f"{kill}-{acknowledged}", state)
                try:
                    reply = server.client.post(path, json=body)
                except httpx.TransportError:
                    unanswered += 1
                    break
                assert reply.status_code == 200, reply.text
                state = after
                acknowledged += 1
        finally:
            killing.join()
            server.kill()
        found = on_disk(data)
        if found != state.items or list(found) != list(state.items):
            assert found == after.items
            assert list(found) == list(after.items)
            state = after
    assert acknowledged > KILLS
    assert unanswered == KILLS
    server = ServerProcess(data)
    try:
        server.wait_until_ready()
        assert_serves(server, state)
    finally:
        assert server.stop() == 0
    assert on_disk(data) == state.items
