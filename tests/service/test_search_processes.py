"""Search processes: they say what the server would have said, of the same moment; and when they fail nobody sees it."""

import asyncio
import contextlib
import os
import queue
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

import service.gathering
import service.searchers.link
import service.searchers.pool
from service import metrics
from service.errors import WouldTakeLongError
from service.records import Codes, Layout
from service.searchers.link import Link
from service.searchers.listening import in_passes
from service.searchers.messages import Ask, Changed, Load, Reply, Unpacker, pack
from service.searchers.replicas import Replicas
from service.settings import Settings
from service.store.interface import NewItem
from service.store.sqlite import SQLiteStore
from tests.service import reencoded
from tests.service.encoders.fakes import add_kinds, letters, write_tables
from tests.service.harness import MODEL, MODEL_FILE, PAIRS, ServerProcess, features, fill, item
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
        running.catalog.reencode("default", "other", lambda *_: None, lambda: None)
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


# -- parts -------------------------------------------------------------------------------------------------------------


def test_messages_are_whole_however_they_come():
    sent = [Reply(b"x" * size, size, 1) for size in (0, 1, 5, 70_000)]
    data = b"".join(map(pack, sent))
    for step in (1, 3, 4, 1000, len(data)):
        unpacker = Unpacker()
        parts = [data[i : i + step] for i in range(0, len(data), step)]
        assert [message for part in parts for message in unpacker.feed(part)] == sent


class Written:
    """A store, and a search process' copy of its one collection."""

    def __init__(self, tmp_path):
        self.store = SQLiteStore(tmp_path / "data")
        self.store.put_model("tiny", MODEL_FILE)
        self.record, _ = self.store.create_collection("default", "tiny")
        self.layout = Layout.of(MODEL)
        self.replicas = Replicas(Settings(data=tmp_path / "data"))

    def load(self):
        loaded = threading.Event()
        self.replicas.load(Load(1, self.record), lambda ok: loaded.set() if ok else None)
        assert loaded.wait(30)

    def write(self, i):
        """Commit a write; the message about it."""
        rows = MODEL.encode({"text": PAIRS["text"][[i]]})
        codes = Codes(np.array([[False, True, False]]), np.zeros((1, 3, rows.shape[1]), np.uint8))
        codes.rows[0, 1] = rows
        records = self.layout.pack(codes)
        change = self.store.upsert(self.record, [NewItem(f"item-{i}", None)], records, lambda _: None)
        return Changed(self.record.number, change, records)

    def ids(self):
        """Ids that a search finds; None if it is left to the server."""
        body = orjson.dumps({"query": features(0, "text"), "database": "text", "limit": 50})
        ((reply,),) = (answers.replies for answers in self.replicas.answer([Ask(1, self.record.number, [body], "", 1)]))
        return None if reply is None else sorted(hit["id"] for hit in orjson.loads(reply.body)["results"])


def test_what_lies_ready_is_taken_together_as_far_as_one_pass_goes():
    asked = queue.SimpleQueue()
    for batch, (number, searches) in enumerate([(1, 4), (1, 3), (1, 2), (2, 1), (1, 9), (1, 1)]):
        asked.put(Ask(batch, number, [b""] * searches, "", 8))
    passes = in_passes(asked)
    assert [ask.batch for ask in next(passes)] == [0, 1]
    assert [ask.batch for ask in next(passes)] == [2]
    asked.put(Ask(6, 1, [b""] * 7, "", 8))
    assert [[ask.batch for ask in next(passes)] for _ in range(3)] == [[3], [4], [5, 6]]
    assert asked.empty()


@pytest.fixture
def written(tmp_path):
    made = Written(tmp_path)
    yield made
    metrics.tell_scans(metrics.count_scan)
    made.store.close()


def test_batches_that_are_answered_together_get_what_is_theirs(written):
    written.load()
    for i in range(5):
        written.replicas.follow(written.write(i))
    bodies = [orjson.dumps({"query": features(i, "text"), "database": "text", "limit": i + 1}) for i in range(4)]
    wrong = orjson.dumps({"query": features(0), "limit": 0})
    number = written.record.number
    asks = [Ask(7, number, bodies[:1], "a", 8), Ask(8, number, [wrong, *bodies[1:]], "b c", 8)]
    first, second = written.replicas.answer(asks)
    assert (first.batch, second.batch) == (7, 8)
    assert (first.rows, second.rows) == (4 * 5, 0)
    assert second.replies[0] is None
    assert [reply.limit for reply in (first.replies[0], *second.replies[1:])] == [1, 2, 3, 4]
    assert all(
        len(orjson.loads(reply.body)["results"]) == reply.limit for reply in (*first.replies, *second.replies[1:])
    )


def test_a_copy_waits_for_what_is_committed_and_about_to_be_told(written, caplog):
    written.replicas.follow(written.write(0))  # nothing is loaded: passed over
    written.load()
    assert written.ids() == ["item-0"]
    told = written.write(1)
    assert written.ids() is None, "not told in time"
    timer = threading.Timer(0.005, lambda: written.replicas.follow(told))
    timer.start()
    assert written.ids() == ["item-0", "item-1"]
    timer.join()
    written.replicas.follow(told)  # again
    assert written.ids() == ["item-0", "item-1"]
    assert not caplog.records


def test_a_copy_takes_what_is_told_while_it_is_loaded(written, monkeypatch):
    written.write(0)
    inside, go_on = threading.Event(), threading.Event()
    real = Replicas._read

    def slow(self, record):
        mirror = real(self, record)
        inside.set()
        assert go_on.wait(30)
        return mirror

    monkeypatch.setattr(Replicas, "_read", slow)
    loaded = threading.Event()
    written.replicas.load(Load(1, written.record), lambda ok: loaded.set() if ok else None)
    assert inside.wait(30)
    for i in (1, 2):
        written.replicas.follow(written.write(i))
    assert written.ids() is None
    go_on.set()
    assert loaded.wait(30)
    assert written.ids() == ["item-0", "item-1", "item-2"]


def test_a_copy_that_missed_something_is_loaded_again(written, caplog):
    written.load()
    written.write(0)
    written.replicas.follow(written.write(1))
    assert written.ids() == ["item-0", "item-1"]
    assert "loading it again" in caplog.text


def test_what_is_dropped_while_it_is_loaded_stays_away(written, monkeypatch):
    inside, go_on = threading.Event(), threading.Event()
    real = Replicas._read

    def slow(self, record):
        inside.set()
        assert go_on.wait(30)
        return real(self, record)

    monkeypatch.setattr(Replicas, "_read", slow)
    loaded = threading.Event()
    written.replicas.load(Load(1, written.record), lambda ok: loaded.set() if ok else None)
    assert inside.wait(30)
    written.replicas.drop(written.record.number)
    go_on.set()
    assert not loaded.wait(0.3)
    assert written.ids() is None


def test_what_cannot_be_loaded_is_told_and_not_waited_for(written, monkeypatch):
    told = queue.SimpleQueue()
    written.replicas.load(Load(1, replace(written.record, number=99)), told.put)
    written.replicas.load(Load(2, replace(written.record, model="nothing")), told.put)
    assert [told.get(timeout=30), told.get(timeout=30)] == [False, False]
    monkeypatch.setattr(Replicas, "_read", lambda *_: 1 / 0)
    written.replicas.load(Load(3, written.record), told.put)
    assert told.get(timeout=30) is False
    written.replicas.follow(written.write(0))
    assert not written.replicas._missed, "what is told is kept for ever"
    assert written.ids() is None


def test_no_process_reads_while_the_log_is_emptied(written):
    with written.store._readers.held(1) as alone:
        assert alone
        with pytest.raises(WouldTakeLongError):
            written.store.lend()
    give_back = written.store.lend()
    with written.store._readers.held(0.01) as alone:
        assert not alone, "a process reads"
    give_back()
    with written.store._readers.held(0.01) as alone:
        assert alone
