"""Search processes: they say what the server would have said, of the same moment; and when they fail nobody sees it."""

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

import service.gathering
import service.searchers.link
import service.searchers.pool
from service.searchers.link import Link
from service.searchers.messages import Load
from tests.service import reencoded
from tests.service.encoders.fakes import add_kinds, letters, write_tables
from tests.service.harness import MODEL_FILE, ServerProcess, features, fill, item
from tests.service.processes import Beside
from tests.service.test_serial_order import CLIENTS, REQUESTS, Client, in_order, run_together


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """The service with one search process, which has the 60 items of `fill`."""
    running = Beside(tmp_path / "data", monkeypatch)
    running.create()
    fill(running)
    running.wait_for_processes()
    yield running
    running.close()


def gone(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
    return True


# -- what they say -----------------------------------------------------------------------------------------------------

QUICK = [
    {"query": features(3)},
    {"query": features(3, "text"), "database": "image", "limit": 5, "metric": "euclidean"},
    {"query": features(4, "image"), "database": ["image", "text", "pair"], "limit": 60, "offset": 7},
    {"query_id": "item-5", "database": "text"},
    {"query_by": {"positive": ["item-2", features(3)], "negative": ["item-8"]}, "limit": 20},
    {"query": features(9), "filter": {"must": [{"ids": ["item-2", "item-5", "item-11"]}]}, "with_payload": False},
    {"query": features(9), "score_threshold": 0.5, "limit": 60, "with_payload": ["n"]},
]
WRONG = [
    {"query": {"image": [1.0]}},
    {"query": features(1), "database": "sound"},
    {"query_id": "nobody"},
    {"query": features(1), "limit": 0},
    {"query": features(1), "rescore": True},
    {"query": features(1), "nonsense": 1},
]
LONG = [
    {"queries": [features(1), features(2)], "limit": 3},
    {"query": features(1), "group_by": "even", "limit": 2},
    {"query": features(1), "filter": {"must": [{"key": "even", "match": {"value": True}}]}},
]


def test_they_reply_what_the_server_does(beside, monkeypatch):
    found = [beside.search(**body) for body in QUICK]
    assert beside.asked == len(QUICK)
    others = [beside.search(**body) for body in WRONG + LONG]
    assert beside.asked == len(QUICK), "what is wrong, and what takes long, is for the server"
    monkeypatch.setattr(beside.app.state.runtime.searches, "_hand_out", lambda: None)
    assert found == [beside.search(**body) for body in QUICK]
    assert others == [beside.search(**body) for body in WRONG + LONG]
    assert beside.asked == len(QUICK)


def test_pages_go_on_where_a_process_has_begun(beside):
    page = beside.search(query=features(3), database=["image", "text"], limit=7)
    seen = list(page["results"])
    while page["next_cursor"]:
        page = beside.search(query=features(3), database=["image", "text"], limit=7, cursor=page["next_cursor"])
        seen += page["results"]
    assert seen == beside.search(query=features(3), database=["image", "text"], limit=99)["results"]
    assert beside.asked == 2


def test_what_they_scan_is_counted(beside):
    def scanned():
        lines = beside.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith("ccq_rows_scanned_total")).split()[1])

    before = scanned()
    beside.search(query=features(3), database="image")
    assert beside.asked == 1
    assert scanned() - before == 40
    assert "ccq_search_processes 1.0" in beside.get("/metrics").text


def test_results_are_ranked_anew_there_too(tmp_path, monkeypatch):
    running = Beside(tmp_path / "data", monkeypatch)
    try:
        reencoded.make(running, "int8")
        running.wait_for_processes()
        found = running.search(query=features(1), rescore=True, oversampling=4)
        assert running.asked == 1
        monkeypatch.setattr(running.app.state.runtime.searches, "_hand_out", lambda: None)
        assert found == running.search(query=features(1), rescore=True, oversampling=4)
    finally:
        running.close()


def test_texts_are_for_the_encoders_of_the_server(tmp_path, monkeypatch):
    add_kinds(monkeypatch)
    running = Beside(tmp_path / "data", monkeypatch, encoders=write_tables(tmp_path))
    try:
        running.create()
        running.ok("PUT", "/collections/default", {"model": "tiny", "encoders": {"text": "letters"}})
        fill(running)
        running.wait_for_processes()
        by_text = running.search(query={"text": "a bad cafe"}, limit=5)
        assert running.asked == 0
        assert running.search(query={"text": letters("a bad cafe")}, limit=5) == by_text
        assert running.asked == 1
    finally:
        running.close()


# -- what they see -----------------------------------------------------------------------------------------------------


def test_they_see_what_was_acknowledged(beside):
    query = features(200)
    for turn in range(60):
        beside.ok("POST", "/index", {"items": [item(200 + turn), item(turn, "image", turn=turn)]})
        only = {"must": [{"ids": [f"item-{turn}"]}]}
        found = beside.search(query=features(200 + turn), database="pair", limit=99)["results"]
        assert f"item-{200 + turn}" in [hit["id"] for hit in found]
        (hit,) = beside.search(query=query, database="image", filter=only)["results"]
        assert hit["payload"] == {"n": turn, "turn": turn}
        beside.ok("PUT", f"/items/item-{turn}/payload", {"new": turn})
        (hit,) = beside.search(query=query, database="image", filter=only)["results"]
        assert hit["payload"] == {"new": turn}
        assert beside.delete(f"/items/item-{200 + turn}").status_code == 204
        found = beside.search(query=features(200 + turn), database="pair", limit=99)["results"]
        assert f"item-{200 + turn}" not in [hit["id"] for hit in found]
    assert beside.asked > 120, "few replies were theirs"


@pytest.mark.parametrize("seed", [11, 12])
def test_some_order_explains_every_reply(tmp_path, monkeypatch, seed):
    running = Beside(tmp_path / "data", monkeypatch, processes=2)
    try:
        running.create()
        running.ok("PUT", "/collections/default", {"model": "tiny", "indexes": ["mark"]})
        running.wait_for_processes()
        clients = [Client(running, number, seed) for number in range(CLIENTS)]
        for client in clients:
            client.limit = 99  # as much as is quick, and more than there ever is
        assert in_order(run_together(running, clients))
        assert running.asked > CLIENTS * REQUESTS / 10, "few replies were theirs"
    finally:
        running.close()


def test_another_model_is_theirs_at_once(tmp_path, monkeypatch):
    running = Beside(tmp_path / "data", monkeypatch)
    try:
        reencoded.make(running, "float16")
        running.wait_for_processes()
        before = running.search(query=features(7), limit=90)
        running.catalog.reencode(running.catalog.collection("default"), "other", lambda *_: None, lambda: None)
        running.ok("POST", "/index", {"items": [reencoded.thing(200)]})
        after = running.search(query=features(7), limit=91)
        running.wait_for_processes()
        asked = running.asked
        assert running.search(query=features(7), limit=91) == after != before
        assert running.asked == asked + 1
    finally:
        running.close()


def test_a_collection_that_is_made_anew_is_another_one(beside):
    number = beside.catalog.collection("default").record.number
    assert beside.delete("/collections/default").status_code == 204
    assert beside.search(query=features(1))["code"] == "collection_not_found"
    beside.create()
    beside.ok("POST", "/index", {"items": [item(300)]})
    beside.wait_for_processes(others=(number,))
    asked = beside.asked
    assert [hit["id"] for hit in beside.search(query=features(1))["results"]] == ["item-300"]
    assert beside.asked == asked + 1


def test_each_collection_is_searched_for_itself(beside):
    beside.create("other")
    beside.ok("POST", "/collections/other/index", {"items": [item(i) for i in range(100, 105)]})
    beside.wait_for_processes("other")

    async def play():
        paths = ["/search", "/collections/other/search"] * 5
        searches = [beside.client.post(path, json={"query": features(1)}) for path in paths]
        return [reply.json()["results"] for reply in await asyncio.gather(*searches)]

    asked = beside.asked
    for i, hits in enumerate(beside.run(play())):
        assert all((int(hit["id"].split("-")[1]) >= 100) == bool(i % 2) for hit in hits)
    assert beside.asked == asked + 10


# -- when they fail ----------------------------------------------------------------------------------------------------


def test_when_one_is_killed_no_search_fails_and_another_begins(beside, monkeypatch):
    monkeypatch.setattr(service.searchers.pool, "_FIRST_PAUSE_SECONDS", 0.01)
    pid = beside.links[0]._process.pid

    async def play():
        searches = [asyncio.ensure_future(beside.client.post("/search", json=QUICK[0])) for _ in range(50)]
        while not beside.links[0].busy:  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        return [reply.status_code for reply in await asyncio.gather(*searches)]

    assert beside.run(play()) == [200] * 50
    assert gone(pid)
    for _ in range(2000):
        if beside.links and beside.links[0]._process.pid != pid:
            break
        beside.run(asyncio.sleep(0.005))
    beside.wait_for_processes()
    asked = beside.asked
    assert beside.search(**QUICK[0])["results"]
    assert beside.asked == asked + 1
    assert "ccq_search_process_ends_total" in beside.get("/metrics").text


def until(service, holds, seconds=20):
    """Let the service run until something holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "not in time"
        service.run(asyncio.sleep(0.01))


@pytest.fixture
def impatient(monkeypatch, beside):
    """The same, where a process is soon found to hang."""
    until(beside, lambda: beside.links[0].room)
    monkeypatch.setattr(service.searchers.link, "_SILENT_SECONDS", 0.5)
    return beside


def test_the_server_answers_for_one_that_is_stopped(impatient, monkeypatch):
    (link,) = impatient.links
    pid = link._process.pid
    try:
        os.kill(pid, signal.SIGSTOP)
        assert impatient.search(**QUICK[0])["results"]
        assert impatient.search(**QUICK[1])["results"]
        assert not link.room, "it is asked no more"
    finally:
        os.kill(pid, signal.SIGCONT)
    monkeypatch.setattr(service.searchers.link, "_SILENT_SECONDS", 30.0)
    until(impatient, lambda: link.room and not link.busy)
    assert impatient.links == [link]
    asked = impatient.asked
    assert impatient.search(**QUICK[2])["results"]
    assert impatient.asked == asked + 1


def test_one_that_stays_silent_is_ended(impatient, monkeypatch):
    monkeypatch.setattr(service.searchers.link, "_DEAD_SECONDS", 1.0)
    pid = impatient.links[0]._process.pid
    os.kill(pid, signal.SIGSTOP)
    until(impatient, lambda: gone(pid))


def test_when_the_server_stands_still_nobody_is_ended(impatient, monkeypatch, caplog):
    monkeypatch.setattr(service.searchers.link, "_DEAD_SECONDS", 2.0)
    (link,) = impatient.links
    time.sleep(2.5)  # nothing runs meanwhile
    impatient.run(asyncio.sleep(0.5))
    assert impatient.links == [link]
    assert not caplog.records


def test_the_server_answers_for_one_that_takes_long(beside, monkeypatch):
    monkeypatch.setattr(service.searchers.link, "_LATE_SECONDS", 0.2)
    (link,) = beside.links
    late = []
    monkeypatch.setattr(link, "_answered", late.append)
    for search in QUICK[:3]:
        assert beside.search(**search)["results"]
    assert len(late) == 1, "it is asked no more"
    monkeypatch.undo()
    for answers in late:
        link._answered(answers)
    assert not link.busy
    assert beside.links == [link]
    assert beside.asked == 0, "nobody waits for these any more"


@pytest.mark.parametrize("hangs", [False, True])
def test_few_wait_for_one_at_work_until_it_answers_or_is_found_to_hang(beside, monkeypatch, hangs):
    monkeypatch.setattr(service.gathering, "_FEW", 3)
    monkeypatch.setattr(service.gathering, "_MANY", 3)
    monkeypatch.setattr(service.searchers.link, "_LATE_SECONDS", 0.5 if hangs else 30.0)
    (link,) = beside.links
    held = []
    link._answered = held.append

    async def play():
        def search(n):
            return [asyncio.ensure_future(beside.client.post("/search", json=QUICK[0])) for _ in range(n)]

        many = search(3)
        while not held:  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.001)
        few = search(2)
        await asyncio.sleep(0.1)
        assert not any(reply.done() for reply in (*many, *few))
        if not hangs:
            del link._answered
            link._answered(held.pop())
        replies = await asyncio.wait_for(asyncio.gather(*many, *few), 20)
        return [reply.json()["results"] for reply in replies]

    hits, *others = beside.run(play())
    assert others == [hits] * 4
    assert beside.asked == (0 if hangs else 3)


def test_one_that_does_not_answer_is_ended(beside, monkeypatch):
    monkeypatch.setattr(service.searchers.link, "_SLOW_SECONDS", 0.3)
    monkeypatch.setattr(Link, "_answered", lambda *_: None)
    pid = beside.links[0]._process.pid
    assert beside.search(**QUICK[0])["results"]
    until(beside, lambda: gone(pid))


def test_one_that_takes_nothing_is_ended(beside, monkeypatch):
    monkeypatch.setattr(service.searchers.link, "_MOST_UNSENT_BYTES", 100_000)
    pid = beside.links[0]._process.pid
    os.kill(pid, signal.SIGSTOP)
    for turn in range(20):
        beside.ok("POST", "/index", {"items": [item(1000 + 1000 * turn + i) for i in range(1000)]})
        if gone(pid):
            return
    raise AssertionError("it goes on")


@pytest.mark.parametrize("error", [OSError("no more processes"), RuntimeError("no more threads")])
def test_none_can_be_started(tmp_path, monkeypatch, caplog, error):
    monkeypatch.setattr(service.searchers.pool, "_FIRST_PAUSE_SECONDS", 0.01)
    tries = []

    def fail(theirs):
        tries.append(theirs)
        if len(tries) < 3:
            raise error
        return start(theirs)

    start = service.searchers.link._start
    monkeypatch.setattr(service.searchers.link, "_start", fail)
    running = Beside(tmp_path / "data", monkeypatch)
    try:
        running.create()
        fill(running)
        assert running.search(**QUICK[0])["results"]
        running.wait_for_processes()
        assert caplog.text.count(f"a search process could not be started: {error}") == 2
    finally:
        running.close()


def test_what_could_not_be_loaded_is_loaded_later(beside, monkeypatch):
    monkeypatch.setattr(service.searchers.link, "_RETRY_SECONDS", 0.01)
    (link,) = beside.links
    record = beside.catalog.collection("default").record
    damaged = Load(1000, replace(record, model="nothing"))
    link.load(damaged)
    link._orders[record.number] = good = Load(1000, record)
    until(beside, lambda: link.has(record.number))
    assert link._orders[record.number] is good
    assert beside.search(**QUICK[0])["results"]
    assert beside.asked == 1


def test_they_know_no_secrets(monkeypatch):
    monkeypatch.setenv("CCQ_JWT_SECRET", "secret")
    monkeypatch.setenv("CCQ_SIMD_LEVEL", "portable")
    environment = service.searchers.link._environment()
    assert {name for name in environment if name.startswith("CCQ_")} == {"CCQ_THREADS", "CCQ_SIMD_LEVEL"}
    assert environment["PATH"] == os.environ["PATH"]


def test_they_end_with_the_server(tmp_path, monkeypatch):
    running = Beside(tmp_path / "data", monkeypatch, processes=3)
    running.create()
    running.wait_for_processes()
    pids = [link._process.pid for link in running.links]
    running.close()
    assert all(map(gone, pids))


def test_those_that_have_not_begun_end_at_once_too(tmp_path, monkeypatch):
    running = Beside(tmp_path / "data", monkeypatch, processes=2)
    running.create()
    until(running, lambda: len(running.links) == 2)
    pids = [link._process.pid for link in running.links]
    running.close()
    assert all(map(gone, pids))


def children(pid):
    """Those of all threads of a process."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for children in found for child in children.read_text().split()]


def test_one_waits_for_the_server_to_end_it(beside):
    (link,) = beside.links
    os.kill(link._process.pid, signal.SIGTERM)
    for turn in range(3):
        assert beside.search(**QUICK[turn])["results"]
    assert beside.asked == 3
    assert not gone(link._process.pid)


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_they_end_however_the_server_ends(tmp_path, number, stopped):
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("this system does not tell a process' children")
    server = ServerProcess(tmp_path / "data", CCQ_SEARCH_PROCESSES="2")
    try:
        server.client.put("/models/tiny", content=MODEL_FILE).raise_for_status()
        server.client.put("/collections/default", json={"model": "tiny"}).raise_for_status()
        for _ in range(1000):
            if len(children(server.process.pid)) == 2:
                break
            time.sleep(0.01)
        pids = children(server.process.pid)
        assert len(pids) == 2
        if stopped:
            time.sleep(1)  # they have begun
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
    finally:
        server.process.send_signal(number)
        server.process.wait(30)
        server.process.stdout.close()
        server.client.close()
    for _ in range(1000):
        if all(map(gone, pids)):
            return
        time.sleep(0.01)
    raise AssertionError("they go on")
