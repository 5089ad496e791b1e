"""Searches that wait for a thread are answered together, and as if each had come alone."""

import asyncio
import threading
from dataclasses import replace

import orjson
import pytest

import service.gathering
import service.store.snapshot
from service.errors import ReplyTooLargeError
from service.gathering import MOST_TOGETHER, Gathering
from service.responses import Json
from service.searchers.pool import SearchProcesses
from service.searching import Caches, search_together
from service.settings import Settings
from service.workers import Workers
from tests.service.harness import InProcess, features, fill


class Searches:
    """Stands for searching: notes what is searched together, and goes on when told to."""

    def __init__(self, monkeypatch, threads):
        self.groups = []
        self.go = threading.Semaphore(0)
        monkeypatch.setattr(service.gathering, "_search", self._search)
        settings = Settings(data="unused", max_rows_at_once=0)
        self.gathering = Gathering(Workers(threads), settings, SearchProcesses(settings, store=None))

    def _search(self, collection, bodies, settings, filters, hand_over):
        self.groups.append([body.decode() for body in bodies])
        assert self.go.acquire(timeout=10)
        if b"broken" in bodies:
            raise OSError("no disk")
        for i, body in enumerate(bodies):
            hand_over(i, ValueError(body.decode()) if body.startswith(b"bad") else Json(body.decode()))

    def begin(self, *bodies, collection="a"):
        return [asyncio.ensure_future(self.gathering.search(collection, body.encode())) for body in bodies]

    async def begun(self, groups):
        for _ in range(2000):
            if len(self.groups) == groups:
                return
            await asyncio.sleep(0.005)
        raise AssertionError(f"searched {self.groups}, expected {groups} groups")


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def test_what_waits_is_searched_together_and_shared_among_threads(monkeypatch):
    async def play():
        searches = Searches(monkeypatch, threads=2)
        running = searches.begin("1", "2")
        await searches.begun(2)
        assert sorted(searches.groups) == [["1"], ["2"]]  # free threads: nothing waits for company
        waiting = searches.begin("3", "4", "5", "6", "7")
        await asyncio.sleep(0.01)
        searches.go.release(2)
        await searches.begun(4)
        assert sorted(map(len, searches.groups[2:])) == [1, 3]
        searches.go.release(3)
        replies = await asyncio.gather(*running, *waiting)
        assert [reply.body.decode() for reply in replies] == [f'"{i}"' for i in range(1, 8)]

    run(play())


def test_other_collections_and_what_may_take_long_go_alone(monkeypatch):
    async def play():
        searches = Searches(monkeypatch, threads=1)
        tasks = searches.begin("first")
        await searches.begun(1)
        long = "x" * (1 << 19)
        slow = [
            '{"filter":1}',
            '{"queries":1}',
            '{"group_by":1}',
            '{"cursor":1}',
            '{"limit": 100}',
            '{"offset":100}',
            long,
        ]
        quick = '{"limit": 99, "offset" : 99, "query_by": {}, "score_threshold": 0.125, "with_payload": []}'
        tasks += searches.begin("1", *slow, quick)
        tasks += searches.begin("3", collection="b")
        searches.go.release(len(tasks))
        await asyncio.gather(*tasks)
        assert searches.groups == [["first"], ["1", quick], *([body] for body in slow), ["3"]]

    run(play())


def test_no_group_is_longer_than_the_widest_pass(monkeypatch):
    async def play():
        searches = Searches(monkeypatch, threads=1)
        tasks = searches.begin("first")
        await searches.begun(1)
        tasks += searches.begin(*(str(i) for i in range(MOST_TOGETHER + 1)))
        searches.go.release(3)
        await asyncio.gather(*tasks)
        assert [len(group) for group in searches.groups] == [1, MOST_TOGETHER, 1]

    run(play())


def test_errors_are_of_the_request_or_of_all(monkeypatch):
    async def play():
        searches = Searches(monkeypatch, threads=1)
        tasks = searches.begin("first")
        await searches.begun(1)
        tasks += searches.begin("good", "bad")
        searches.go.release(2)
        first, good, bad = await asyncio.gather(*tasks, return_exceptions=True)
        assert (first.body, good.body, repr(bad)) == (b'"first"', b'"good"', "ValueError('bad')")
        tasks = searches.begin("first")
        await searches.begun(3)
        tasks += searches.begin("other", "broken")
        searches.go.release(2)
        first, *others = await asyncio.gather(*tasks, return_exceptions=True)
        assert first.body == b'"first"'
        assert [repr(error) for error in others] == ["OSError('no disk')"] * 2

    run(play())


def test_a_search_that_nobody_waits_for_any_more_is_left_out(monkeypatch):
    async def play():
        searches = Searches(monkeypatch, threads=1)
        running = searches.begin("first")
        await searches.begun(1)
        gone, here, *_ = searches.begin("gone", "here")
        await asyncio.sleep(0.01)
        gone.cancel()
        running[0].cancel()
        await asyncio.sleep(0.01)
        searches.go.release(2)
        assert (await here).body == b'"here"'
        assert searches.groups == [["first"], ["here"]]
        later = searches.begin("later")
        searches.go.release(1)
        assert (await later[0]).body == b'"later"'

    run(play())


def test_a_reply_that_is_too_large_is_no_matter_of_the_others(tmp_path):
    service = InProcess(tmp_path / "data", max_reply_bytes=1024)
    service.create()
    fill(service)
    collection = service.catalog.collection("default")
    small, large = (
        orjson.dumps({"query": features(1), "database": "image", "limit": n, "with_payload": False}) for n in (1, 40)
    )
    answers = dict(
        search_together(collection, [small, large, small, large, small], service.settings, Caches.of(service.settings))
    )
    service.close()
    assert [isinstance(answers[i], ReplyTooLargeError) for i in range(5)] == [False, True] * 2 + [False]
    assert answers[0].reply["results"] == answers[2].reply["results"] == answers[4].reply["results"]


class Groups:
    """Notes how many searches are answered together, on the event loop and by threads."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(service.store.snapshot, "QUICK_SECONDS", 60.0)  # the machine may have other things to do
        monkeypatch.setattr(service.gathering, "_LONG_SECONDS", 60.0)
        self.quick, self.others = [], []
        real = service.gathering.search_together

        def noted(collection, bodies, *rest, quick=False):
            (self.quick if quick else self.others).append(len(bodies))
            return real(collection, bodies, *rest, quick=quick)

        monkeypatch.setattr(service.gathering, "search_together", noted)


@pytest.mark.parametrize(("threads", "rows"), [(1, 0), (2, 0), (2, 10**8), (1, 1000)])
def test_replies_are_those_of_searches_that_come_alone(tmp_path, monkeypatch, threads, rows):
    filled = InProcess(tmp_path / "data", search_threads=threads, max_rows_at_once=rows)
    filled.create()
    fill(filled)
    groups = Groups(monkeypatch)
    bodies = [
        {"query": features(i), "limit": 1 + i % 3, "metric": ("cosine", "euclidean")[i % 2], "database": database}
        for i in range(20)
        for database in ("image", ["text", "image"])
    ]
    bodies += [
        {"query_id": "item-3"},
        {"query_id": "nobody"},
        {"query": {}},
        {"query": features(1), "limit": 0},
        {"q": 1},
    ]
    bodies += [
        {"query": features(1), "filter": {"must": [{"ids": ["item-4"]}]}},
        {"queries": [features(2), features(3)]},
        {"query": features(1), "group_by": "even", "group_size": 3, "database": "image"},
        {"query": features(1), "cursor": "x"},
    ]
    bodies += [
        {"query": features(i), "database": "image", "limit": 3, **more}
        for i in range(3)
        for more in ({"offset": 5}, {"score_threshold": 0.5}, {"with_payload": ["n"]}, {"with_payload": False})
    ]
    examples = (["item-3"], ["item-3", "item-4", "item-5"], [features(2), "item-5"], ["nobody"])
    bodies += [{"query_by": {"positive": positive, "negative": ["item-8"]}, "limit": 3} for positive in examples]

    def shown(response):
        body = response.json()
        return (
            response.status_code,
            body.get("results"),
            body.get("next_cursor"),
            body.get("errors"),
            body.get("detail"),
        )

    async def together():
        return await asyncio.gather(*(filled.client.post("/search", json=body) for body in bodies))

    alone = [shown(filled.run(filled.client.post("/search", json=body))) for body in bodies]
    assert {*groups.quick, *groups.others} == {1}
    assert {status for status, *_ in alone} >= {200, 404, 422}
    assert len(groups.others) == (3 if rows else len(bodies))  # those that may take long
    groups.quick.clear(), groups.others.clear()
    assert [shown(response) for response in filled.run(together())] == alone
    assert sum(groups.others) == (3 if rows else len(bodies))
    assert sum(groups.quick) == (len(bodies) - 3 if rows else 0)
    assert max(groups.quick, default=0) == {0: 0, 1000: 10, 10**8: len(bodies) - 3}[rows]
    assert rows or max(groups.others) > 10
    filled.close()


def test_what_would_wait_or_read_all_payloads_is_left_to_threads(filled, monkeypatch):
    groups = Groups(monkeypatch)
    search = {"query": features(1), "limit": 3}
    by_number = {**search, "filter": {"must": [{"key": "n", "range": {"lt": 9}}]}}
    quick = filled.ok("POST", "/search", search)["results"]
    filtered = filled.ok("POST", "/search", by_number)["results"]
    assert (groups.quick, groups.others) == ([1, 1], [1])
    filled.put("/collections/default", {"model": "tiny", "indexes": ["n"]})
    assert filled.ok("POST", "/search", by_number)["results"] == filtered
    assert (groups.quick, groups.others) == ([1, 1, 1], [1])
    with filled.app.state.runtime.store._readers.held(0.1):  # the log is being emptied
        task = asyncio.ensure_future(filled.client.post("/search", json=search), loop=filled._runner.get_loop())
        filled.run(asyncio.sleep(0.1))
        assert not task.done()
    assert filled.run(asyncio.wait_for(task, 20)).json()["results"] == quick
    assert (groups.quick, groups.others) == ([1] * 4, [1, 1])
    collection = filled.catalog.collection("default")
    newest = collection._view
    collection._view = replace(newest, version=newest.version - 1)  # a write was committed and is about to be published
    task = asyncio.ensure_future(filled.client.post("/search", json=search), loop=filled._runner.get_loop())
    filled.run(asyncio.sleep(0.01))
    collection._view = newest
    assert filled.run(asyncio.wait_for(task, 20)).json()["results"] == quick
    assert (groups.quick, groups.others) == ([1] * 5, [1] * 3)


def test_after_a_pass_that_took_long_threads_search_for_a_while(filled, monkeypatch):
    groups = Groups(monkeypatch)
    monkeypatch.setattr(service.gathering, "_LONG_SECONDS", 0.0)
    monkeypatch.setattr(service.gathering, "_WHILE_SECONDS", 2.0)
    for _ in range(3):
        filled.ok("POST", "/search", {"query": features(1)})
    assert (groups.quick, groups.others) == ([1], [1, 1])
    filled.run(asyncio.sleep(2.1))
    filled.ok("POST", "/search", {"query": features(1)})
    assert (groups.quick, groups.others) == ([1, 1], [1, 1])


def test_what_reads_for_long_is_left_to_threads(filled, monkeypatch):
    filled.put("/collections/default", {"model": "tiny", "indexes": ["n"]})
    groups = Groups(monkeypatch)
    search = {"query": features(1), "database": "image", "limit": 3}
    bodies = [
        search,
        {**search, "filter": {"must": [{"ids": ["item-1", "item-3"]}]}},
        {**search, "filter": {"must": [{"key": "n", "match": {"any": [1, 3]}}]}},
    ]
    quick = [filled.ok("POST", "/search", body)["results"] for body in bodies]
    assert (groups.quick, groups.others) == ([1] * 3, [])
    monkeypatch.setattr(service.store.snapshot, "QUICK_SECONDS", -1.0)
    assert [filled.ok("POST", "/search", body)["results"] for body in bodies] == quick
    assert (groups.quick, groups.others) == ([1] * 6, [1] * 3)
    monkeypatch.setattr(service.store.snapshot, "QUICK_SECONDS", 60.0)
    monkeypatch.setattr(service.store.snapshot, "_QUICK_POSTINGS", 5)
    many = {**search, "filter": {"must": [{"key": "n", "range": {"lt": 6}}]}}
    assert {hit["payload"]["n"] for hit in filled.ok("POST", "/search", many)["results"]} < set(range(6))
    assert (groups.quick, groups.others) == ([1] * 7, [1] * 4)


def test_no_spelling_puts_what_takes_long_on_the_event_loop(filled, monkeypatch):
    groups = Groups(monkeypatch)
    bodies = [
        b'{"quer\\u0069es": [{"image": %s}]}',
        b'{"query": {"image": %s}, "gr\\u006fup_by": "n"}',
        b'{"query": {"image": %s}, "limit": 99, "off\\u0073et": 500}',
        b'{"query": {"image": %s}, "l\\u0069mit": 300}',
        b'{"query_by": {"positive": [' + b'"item-1", ' * 20 + b'{"image": %s}]}}',
    ]
    kind = {"Content-Type": "application/json"}
    for body in bodies:
        content = body % orjson.dumps(features(1)["image"])
        assert filled.request("POST", "/search", content=content, headers=kind).status_code == 200, body
    assert (groups.quick, groups.others) == ([1] * 5, [1] * 5)


def test_searches_that_need_a_thread_get_one_while_others_keep_coming(filled, monkeypatch):
    """On the event loop there is always something quick to do, as from many connections."""

    async def play():
        stop = asyncio.Event()
        answered = 0

        async def keep_coming():
            nonlocal answered
            while not stop.is_set():
                await filled.client.post("/search", json={"query": features(1)})
                answered += 1

        coming = [asyncio.ensure_future(keep_coming()) for _ in range(8)]
        by_number = {"query": features(1), "filter": {"must": [{"key": "n", "range": {"lt": 9}}]}}
        try:
            for _ in range(3):
                response = await asyncio.wait_for(filled.client.post("/search", json=by_number), 20)
                assert response.status_code == 200
        finally:
            stop.set()
            await asyncio.gather(*coming)
        return answered

    Groups(monkeypatch)
    assert filled.run(play()) > 8


def test_searches_that_are_still_on_their_way_are_waited_for(filled, monkeypatch):
    groups = Groups(monkeypatch)
    searches, collection = filled.app.state.runtime.searches, filled.catalog.collection("default")

    async def play():
        begun = []
        for turns in (0, 2, 2, 20):
            for _ in range(turns):
                await asyncio.sleep(0)
            body = orjson.dumps({"query": features(len(begun))})
            begun.append(asyncio.ensure_future(searches.search(collection, body)))
        await asyncio.gather(*begun)

    filled.run(play())
    assert groups.quick == [3, 1]


def test_as_many_as_fit_one_pass_are_not_kept_waiting_by_those_behind(filled, monkeypatch):
    groups = Groups(monkeypatch)
    searches, collection = filled.app.state.runtime.searches, filled.catalog.collection("default")
    body = orjson.dumps({"query": features(1)})

    async def play():
        begun = [asyncio.ensure_future(searches.search(collection, body))]
        while not begun[0].done() and len(begun) < 3 * MOST_TOGETHER:
            await asyncio.sleep(0)
            begun.append(asyncio.ensure_future(searches.search(collection, body)))
        await asyncio.gather(*begun)
        return len(begun)

    assert filled.run(play()) < MOST_TOGETHER + 10
    assert groups.quick[0] == MOST_TOGETHER


def test_those_that_need_a_thread_get_it_in_the_order_of_their_coming(tmp_path):
    service = InProcess(tmp_path / "data", search_threads=1)
    service.create()
    fill(service)
    searches, collection = service.app.state.runtime.searches, service.catalog.collection("default")
    bodies = [{"query": features(1), "filter": {"must": [{"key": "n", "range": {"lt": i}}]}} for i in range(12)]
    order = []

    async def play():
        begun = []
        for i, body in enumerate(bodies):
            search = asyncio.ensure_future(searches.search(collection, orjson.dumps(body)))
            search.add_done_callback(lambda _, i=i: order.append(i))
            begun.append(search)
            for _ in range(8):
                await asyncio.sleep(0)
        await asyncio.gather(*begun)

    service.run(play())
    service.close()
    assert order == list(range(12))
