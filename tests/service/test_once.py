"""Idempotency-Key: a write that is asked for again is not done again, and gets the reply that it got."""

import threading
import time
from contextlib import suppress

import apsw
import httpx
import orjson
import pytest

from service.indexing import prepare_items, store_items
from service.store import replies
from service.store.reading import DATABASE_NAME
from service.writing import Asked
from tests.service.harness import ServerProcess, assert_problem, item


def ask(service, method, path, body, key="k", **headers):
    return service.request(method, path, json=body, headers={"Idempotency-Key": key, **headers})


def same_again(service, method, path, body):
    """Ask twice; what both have replied."""
    first, again = ask(service, method, path, body), ask(service, method, path, body)
    assert first.status_code == again.status_code == 200, first.text
    assert first.content == again.content
    assert first.headers["content-type"] == again.headers["content-type"] == "application/json"
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    return again.json()


def version(service):
    return service.catalog.collection("default").view.version


def kept(service):
    """How many replies the database has."""
    store = service.app.state.runtime.store
    return store.exclusively(lambda: store._connection.execute("SELECT count(*) FROM replies").get)


@pytest.mark.parametrize(
    ("method", "path", "body", "reply"),
    [
        ("POST", "/index", {"items": [item(1), item(100)]}, {"indexed": 2}),
        ("POST", "/items/delete", {"ids": ["item-1", "nobody"]}, {"deleted": 1}),
        ("POST", "/items/delete", {"filter": {"must": [{"key": "n", "range": {"lt": 3}}]}}, {"deleted": 3}),
        ("POST", "/items/delete", {"filter": {"must": [{"key": "n", "match": {"value": -1}}]}}, {"deleted": 0}),
        ("PUT", "/items/item-1/payload", {"new": 1}, {"id": "item-1", "version": 2}),
    ],
)
def test_the_same_again_is_not_done_again(filled, method, path, body, reply):
    found = same_again(filled, method, path, body)
    assert {key: found[key] for key in reply} == reply
    assert version(filled) == (1 if reply == {"deleted": 0} else 2)
    filled.restart()
    assert ask(filled, method, f"/collections/default{path}", body).json() == found
    assert version(filled) == (1 if reply == {"deleted": 0} else 2)


def test_another_request_with_the_same_key_is_refused(filled):
    ask(filled, "PUT", "/items/item-1/payload", {"new": 1})
    others = [
        ("PUT", "/items/item-1/payload", {"new": 2}, {}),
        ("PUT", "/items/item-2/payload", {"new": 1}, {}),
        ("PUT", "/items/item-1/payload", {"new": 1}, {"If-Match": '"2"'}),
        ("POST", "/items/delete", {"ids": []}, {}),
        ("POST", "/index", {"items": [item(100)]}, {}),
    ]
    for method, path, body, headers in others:
        problem = assert_problem(ask(filled, method, path, body, **headers), 422, "idempotency_key_reused")
        assert problem["errors"][0]["pointer"] == "Idempotency-Key"
    assert version(filled) == 2
    assert ask(filled, "PUT", "/items/item-1/payload", {"new": 2}, key="other").json()["version"] == 3


def test_keys_belong_to_a_collection(filled):
    body = {"items": [item(100)]}
    filled.create("c")
    ask(filled, "POST", "/index", body)
    assert "idempotency-replayed" not in ask(filled, "POST", "/collections/c/index", body).headers
    filled.delete("/collections/c")
    assert kept(filled) == 1
    filled.create("c")
    assert "idempotency-replayed" not in ask(filled, "POST", "/collections/c/index", body).headers
    assert filled.ok("GET", "/collections/c")["items"] == 1


def test_what_failed_may_be_tried_again_with_its_key(filled):
    items = {"items": [{**item(1), "if_version": 5}]}
    assert_problem(ask(filled, "POST", "/index", items), 412, "version_mismatch")
    items["items"][0]["if_version"] = 1
    assert ask(filled, "POST", "/index", items).json()["indexed"] == 1
    again = ask(filled, "POST", "/index", items)  # though the item has another version by now
    assert again.status_code == 200
    assert version(filled) == 2


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_keys_have_bounds(filled, key):
    problem = assert_problem(ask(filled, "POST", "/index", {"items": [item(100)]}, key=key), 422, "invalid_request")
    assert problem["errors"][0]["pointer"].lower() == "idempotency-key"
    assert ask(filled, "POST", "/index", {"items": [item(100)]}, key="k" * 255).status_code == 200


def test_after_a_day_a_key_is_free_again_and_its_reply_is_removed(filled, monkeypatch):
    body, now = {"items": [item(100)]}, time.time()
    ask(filled, "POST", "/index", body, key="a")
    ask(filled, "POST", "/index", body, key="b")
    monkeypatch.setattr(replies.time, "time", lambda: now + replies.KEPT_SECONDS - 60)
    assert ask(filled, "POST", "/index", body, key="a").headers["idempotency-replayed"] == "true"
    monkeypatch.setattr(replies.time, "time", lambda: now + replies.KEPT_SECONDS + 60)
    first = ask(filled, "POST", "/index", body, key="a")
    assert "idempotency-replayed" not in first.headers
    assert ask(filled, "POST", "/index", body, key="a").headers["idempotency-replayed"] == "true"
    store = filled.app.state.runtime.store
    store._writer.run(store._tidier)
    assert kept(filled) == 1


def test_many_at_one_time_are_done_once(service):
    collection = service.catalog.collection("default")
    body = orjson.dumps({"items": [item(0)]})
    together, found = threading.Barrier(8), []

    def write():
        for turn in range(10):
            prepared = prepare_items(collection, body, service.settings)
            together.wait(20)
            found.append((turn, store_items(collection, prepared, Asked.of(str(turn), body))))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collection.view.version == 10
    for turn in range(10):
        written = [reply for number, reply in found if number == turn]
        assert sorted(reply.replayed for reply in written) == [False] + 7 * [True]
        assert len({reply.body for reply in written}) == 1


def test_parts_do_not_run_into_each_other():
    assert Asked.of("k", "ab", "c") != Asked.of("k", "a", "bc")
    assert Asked.of("k", "a", b"b") == Asked.of("k", "a", "b")
    assert Asked.of(None, "a") is None


@pytest.fixture
def start(tmp_path, model_path):
    """Starts a server on one data directory; none outlives the test."""
    servers = []

    def start():
        servers.append(ServerProcess(tmp_path / "data", model_path))
        servers[-1].wait_until_ready()
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()


def test_killed_between_commit_and_reply(tmp_path, start):
    """The server dies while clients wait for their replies; all ask again, and each write was done once."""
    data, turns, unanswered = tmp_path / "data", 8, 0
    server = start()
    for turn in range(turns):
        answers = {}

        def write(i, server=server, turn=turn, answers=answers):
            body, headers = {"items": [item(i, turn=turn)]}, {"Idempotency-Key": f"{turn} {i}"}
            with suppress(httpx.TransportError):
                answers[i] = httpx.post(f"{server.url}/index", json=body, headers=headers, timeout=30).content

        threads = [threading.Thread(target=write, args=(i,)) for i in range(30)]
        for thread in threads:
            thread.start()
        while not answers and any(thread.is_alive() for thread in threads):
            time.sleep(0.0005)
        server.kill()
        for thread in threads:
            thread.join()
        unanswered += 30 - len(answers)
        before = versions(data)
        server = start()
        first = dict(answers)
        for i in range(30):
            write(i, server, turn, answers)
        assert first.items() <= answers.items()  # what was answered is answered the same
        assert len(answers) == 30
        found = server.client.get("/items", params={"limit": 100}).json()["items"]
        assert len(found) == 30
        for stored in found:
            assert stored["payload"]["turn"] == turn
            if before.get(stored["id"], (None, None))[1] == turn:  # the commit had come before the kill
                assert stored["version"] == before[stored["id"]][0]
        assert max(one["version"] for one in found) == 30 * (turn + 1)
    assert unanswered
    assert server.stop() == 0


def versions(data):
    """Id to (version, turn), from the database."""
    connection = apsw.Connection(str(data / DATABASE_NAME))
    try:
        rows = connection.execute("SELECT id, version, payload FROM items_1")
        return {item_id: (number, orjson.loads(payload)["turn"]) for item_id, number, payload in rows}
    finally:
        connection.close()
