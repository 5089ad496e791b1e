"""What a search process is made of: messages, passes, and copies of collections that follow what is written."""

import queue
import threading
from dataclasses import replace

import numpy as np
import orjson
import pytest

from service import metrics
from service.errors import WouldTakeLongError
from service.records import Codes, Layout
from service.searchers.listening import in_passes
from service.searchers.messages import Ask, Changed, Load, Reply, Unpacker, pack
from service.searchers.replicas import Replicas
from service.settings import Settings
from service.store.interface import NewItem
from service.store.sqlite import SQLiteStore
from tests.service.harness import MODEL, MODEL_FILE, PAIRS, features


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
