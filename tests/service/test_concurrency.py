"""Searches while others write, against a real server: every reply is of a whole number of writes."""

import threading
import time

import httpx
import pytest

from tests.service.harness import ServerProcess, features, item

SECONDS = 3.0
GROUP = 25


@pytest.fixture
def server(tmp_path, model_path):
    server = ServerProcess(tmp_path / "data", model_path, CCQ_SEARCH_THREADS="4")
    yield server
    server.kill()


def group(name, write):
    """Items of one write: all have its mark."""
    return [{**item(i, group=name, write=write), "id": f"{name}-{i}"} for i in range(GROUP)]


def only(name):
    return {"must": [{"key": "group", "match": {"value": name}}]}


class Clients:
    """Threads that do something again and again until the time is over; what they raise fails the test."""

    def __init__(self, url):
        self.url, self.failures, self.rounds = url, [], {}
        self.end = time.monotonic() + SECONDS
        self.threads = []

    def start(self, work, *args):
        name = f"{work.__name__}{args}"

        def run():
            with httpx.Client(base_url=self.url, timeout=30) as client:
                try:
                    while time.monotonic() < self.end:
                        work(client, self.rounds.get(name, 0), *args)
                        self.rounds[name] = self.rounds.get(name, 0) + 1
                except BaseException as error:
                    self.failures.append((name, error))

        self.threads.append(threading.Thread(target=run, name=name))
        self.threads[-1].start()

    def join(self):
        for thread in self.threads:
            thread.join()
        assert self.failures == []
        assert len(self.rounds) == len(self.threads)
        assert min(self.rounds.values()) >= 5, self.rounds


def call(client, path, body):
    reply = client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def replace(client, turn, name):
    call(client, "/index", {"items": group(name, turn + 1)})


def delete_and_index(client, turn, name):
    items = group(name, turn + 1)
    if turn % 2:
        found = call(client, "/items/delete", {"filter": only(name)})
    else:
        found = call(client, "/items/delete", {"ids": [one["id"] for one in items]})
    assert found["deleted"] == GROUP
    call(client, "/index", {"items": items})


def search_whole_writes(client, turn, name, sizes):
    databases = ["pair", "image", ["image", "text", "pair"]][turn % 3]
    times = len(databases) if isinstance(databases, list) else 1
    body = {"query": features(turn), "database": databases, "limit": 5 * GROUP, "filter": only(name)}
    hits = call(client, "/search", body)["results"]
    assert len(hits) in [times * size for size in sizes]
    assert len({hit["payload"]["write"] for hit in hits}) <= 1
    assert len({(hit["id"], hit["database"]) for hit in hits}) == len(hits)


def search_without_filter(client, turn):
    hits = call(client, "/search", {"query": features(turn), "limit": 1000})["results"]
    marks = {}
    for hit in hits:
        marks.setdefault(hit["payload"]["group"], []).append(hit["payload"]["write"])
    assert len(marks["replaced"]) == GROUP
    assert len(marks.get("deleted", [])) in (0, GROUP)
    assert all(len(set(writes)) == 1 for writes in marks.values())


def never_short(client, turn):
    """An item that is deleted or replaced meanwhile never makes a result short: the others are always there."""
    assert len(call(client, "/search", {"query": features(turn), "limit": 2 * GROUP})["results"]) == 2 * GROUP
    by_item = call(client, "/search", {"query_id": "stable-3", "limit": 2 * GROUP - 1})["results"]
    assert len(by_item) == 2 * GROUP - 1
    assert "stable-3" not in {hit["id"] for hit in by_item}


def list_whole_writes(client, turn):
    found = client.get("/items", params={"limit": 1000}).json()["items"]
    writes = {one["payload"]["write"] for one in found if one["payload"]["group"] == "replaced"}
    assert len(writes) == 1


def test_every_reply_is_of_one_moment(server):
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for name in ("stable", "replaced", "deleted"):
            call(client, "/index", {"items": group(name, 0)})
    clients = Clients(server.url)
    clients.start(replace, "replaced")
    clients.start(delete_and_index, "deleted")
    clients.start(search_whole_writes, "replaced", [GROUP])
    clients.start(search_whole_writes, "deleted", [0, GROUP])
    clients.start(search_without_filter)
    clients.start(never_short)
    clients.start(list_whole_writes)
    clients.join()


def test_what_one_wrote_one_finds(server):
    """An acknowledged write is seen by every search that starts afterwards, also while others write."""

    def write_and_read(client, turn, name):
        item_id = f"{name}-{turn}"
        vectors = features(turn)
        call(client, "/index", {"items": [{"id": item_id, "features": vectors, "payload": {"turn": turn}}]})
        found = call(client, "/search", {"query": vectors, "limit": 5, "filter": {"must": [{"ids": [item_id]}]}})
        assert [hit["payload"] for hit in found["results"]] == [{"turn": turn}]
        if turn % 3 == 0:
            assert client.delete(f"/items/{item_id}").status_code == 204
            assert client.get(f"/items/{item_id}").status_code == 404
            assert client.post("/search", json={"query_id": item_id}).status_code == 404

    clients = Clients(server.url)
    for name in ("a", "b", "c"):
        clients.start(write_and_read, name)
    clients.join()
