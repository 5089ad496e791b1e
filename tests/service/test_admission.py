"""How much is taken on at one time: requests that wait, the time they may take, memory for bodies; and GET /limits."""

import asyncio
import contextlib
import threading
import typing

import httpx
import orjson
import pytest

from service import routes
from service.collection import Collection
from service.settings import Settings
from service.store import segments
from tests.service.harness import DIMS, InProcess, assert_problem, features, fill, item

SEARCH = {"query": features(0)}
INDEX = {"items": [item(0)]}


@contextlib.contextmanager
def running(tmp_path, **settings):
    """The service with 60 items and these settings; a search and a write at a time."""
    unlimited = InProcess(tmp_path / "data")
    unlimited.create()
    fill(unlimited)
    unlimited.close()
    service = InProcess(tmp_path / "data", search_threads=1, write_threads=1, max_rows_at_once=0, **settings)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.close()


class Held:
    """Functions that stop as they begin, until `go_on`: by default those that read a collection, or write to it."""

    def __init__(self, monkeypatch, functions):
        self.begun = 0
        self.go_on = threading.Event()
        for owner, name in functions or ((Collection, "read"), (segments, "append")):
            monkeypatch.setattr(owner, name, self._held(getattr(owner, name)))

    def _held(self, original):
        def held(*arguments, **options):
            self.begun += 1
            assert self.go_on.wait(30)
            return original(*arguments, **options)

        return held

    async def until_begun(self):
        for _ in range(10_000):
            if self.begun:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("nothing began")


@pytest.fixture
def hold(monkeypatch):
    held = []

    def hold(*functions):
        held.append(Held(monkeypatch, functions))
        return held[-1]

    yield hold
    for each in held:
        each.go_on.set()


async def start(service, path, body, count):
    """So many requests, sent one after another and all admitted; tasks of their responses."""
    tasks = []
    for _ in range(count):
        tasks.append(asyncio.ensure_future(service.client.post(path, json=body)))
        for _ in range(20):
            await asyncio.sleep(0)
    return tasks


# -- too many --------------------------------------------------------------------------------------------------------


def test_one_request_too_many_is_told_to_come_again(tmp_path, hold):
    with running(tmp_path, max_waiting=3) as service:
        held = hold()

        async def overload():
            waiting = await start(service, "/search", SEARCH, 3)
            await held.until_begun()
            refused = [
                await service.client.post("/search", json=SEARCH),
                await service.client.post("/index", json=INDEX),
                await service.client.get("/items"),
                await service.client.get("/limits"),
            ]
            probes = [await service.client.get(path) for path in ("/livez", "/readyz", "/version", "/metrics")]
            held.go_on.set()
            return refused, probes, await asyncio.gather(*waiting)

        refused, probes, answered = service.run(overload())
        for response in refused:
            problem = assert_problem(response, 503, "overloaded")
            assert problem["detail"] == "expected at most 3 requests at one time, got one more"
            assert response.headers["retry-after"] == "1"
        assert [response.status_code for response in probes + answered] == [200] * 7
        assert service.post("/search", SEARCH).status_code == 200


def test_writes_have_a_bound_of_their_own(tmp_path, hold):
    with running(tmp_path, max_waiting_writes=2) as service:
        held = hold()

        async def overload():
            waiting = await start(service, "/index", INDEX, 2)
            await held.until_begun()
            refused = [
                await service.client.post("/index", json=INDEX),
                await service.client.delete("/items/item-1"),
                await service.client.put("/collections/new", json={"model": "tiny"}),
            ]
            read = await service.client.get("/collections")
            held.go_on.set()
            return refused, read, await asyncio.gather(*waiting)

        refused, read, answered = service.run(overload())
        for response in refused:
            assert "at most 2 writes" in assert_problem(response, 503, "overloaded")["detail"]
        assert [response.status_code for response in (read, *answered)] == [200] * 3
        assert service.ok("GET", "/collections/default")["items"] == 60
        assert service.post("/index", INDEX).status_code == 200


def test_what_fails_makes_room_too(tmp_path):
    with running(tmp_path, max_waiting=1, max_waiting_writes=1) as service:
        for _ in range(3):
            assert_problem(service.post("/index", {}), 422, "invalid_request")
            assert_problem(service.get("/collections/nowhere/items"), 404, "collection_not_found")
        assert service.post("/index", INDEX).status_code == 200


# -- too long --------------------------------------------------------------------------------------------------------


def test_a_request_that_takes_too_long_is_answered_and_keeps_its_place(tmp_path, hold):
    with running(tmp_path, request_seconds=1, max_waiting_writes=1) as service:
        held = hold()

        async def late():
            response = await service.client.post("/index", json={"items": [item(100)]})
            meanwhile = await service.client.post("/index", json=INDEX)  # the first is still at work
            held.go_on.set()
            return response, meanwhile

        # The client has its answer before the app returns: only a real server would show that to httpx.
        response, meanwhile = service.run(answered_early(service, late))
        problem = assert_problem(response, 503, "timeout")
        assert "longer than 1 seconds" in problem["detail"]
        assert "may still be carried out" in problem["detail"]
        assert_problem(meanwhile, 503, "overloaded")
        for _ in range(1000):
            if service.get("/items/item-100").status_code == 200:
                break
            service.run(asyncio.sleep(0.005))
        assert service.ok("GET", "/collections/default")["items"] == 61  # it was carried out
        assert service.post("/index", INDEX).status_code == 200


def test_what_fails_after_its_time_was_over_is_logged_and_does_no_harm(tmp_path, hold, monkeypatch, caplog):
    with running(tmp_path, request_seconds=1) as service:
        held = hold()

        def fail(*_):
            held.begun += 1
            assert held.go_on.wait(30)
            raise ZeroDivisionError

        monkeypatch.setattr(Collection, "upsert", fail)

        async def late():
            response = await service.client.post("/index", json=INDEX, headers={"X-Request-Id": "r1"})
            held.go_on.set()
            return response

        assert_problem(service.run(answered_early(service, late)), 503, "timeout")
        logged = [record for record in caplog.records if record.exc_info]
        assert [record.getMessage() for record in logged] == ["request r1 failed after it had been answered"]
        assert logged[0].exc_info[0] is ZeroDivisionError


async def answered_early(service, work):
    """Run `work` with a client that goes on as soon as a response is complete, as over a connection."""
    running = set()

    async def app(scope, receive, send):
        complete = asyncio.Event()

        async def noted(message):
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                complete.set()

        task = asyncio.ensure_future(service.app(scope, receive, noted))
        running.add(task)
        task.add_done_callback(running.discard)
        await asyncio.wait({task, asyncio.ensure_future(complete.wait())}, return_when=asyncio.FIRST_COMPLETED)

    usual = service.client
    service.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
    try:
        result = await work()
        await asyncio.gather(*running)
        return result
    finally:
        await service.client.aclose()
        service.client = usual


@pytest.mark.parametrize(
    ("path", "body", "function"),
    [("/search", SEARCH, (Collection, "read")), ("/index", INDEX, (routes.items, "prepare_items"))],
)
def test_what_waits_too_long_is_not_begun(tmp_path, hold, path, body, function):
    with running(tmp_path, request_seconds=1) as service:
        held = hold(function)

        async def late():
            first = await start(service, path, body, 1)
            await held.until_begun()
            other = {"items": [item(200)]} if path == "/index" else SEARCH
            waiting = await start(service, path, other, 3)
            responses = await asyncio.gather(*waiting)
            held.go_on.set()
            return [*responses, await first[0]]

        for response in service.run(answered_early(service, late)):
            assert_problem(response, 503, "timeout")
        assert held.begun == 1
        assert_problem(service.get("/items/item-200"), 404, "item_not_found")
        assert service.post("/search", SEARCH).status_code == 200


def test_a_body_that_does_not_arrive_is_waited_for_only_so_long(tmp_path):
    with running(tmp_path, request_seconds=0.2, max_waiting=1) as service:
        stop = asyncio.Event()

        async def slow():
            yield b'{"items": ['
            with contextlib.suppress(asyncio.CancelledError):
                await stop.wait()

        async def late():
            kind = {"Content-Type": "application/json"}
            response = await service.client.post("/index", content=slow(), headers=kind)
            stop.set()
            return response

        assert_problem(service.run(answered_early(service, late)), 503, "timeout")
        assert service.post("/index", INDEX).status_code == 200


def test_searching_goes_on_when_the_request_is_over_with_which_it_began(tmp_path, monkeypatch):
    """The task that searches outlives the request that started it, and must not inherit its end."""
    with running(tmp_path, request_seconds=1) as service:

        async def search_without_a_break():
            statuses = set()
            deadline = asyncio.get_running_loop().time() + 2.5

            async def client():
                while asyncio.get_running_loop().time() < deadline:
                    statuses.add((await service.client.post("/search", json=SEARCH)).status_code)

            await asyncio.gather(*(client() for _ in range(4)))
            return statuses

        assert service.run(search_without_a_break()) == {200}


# -- too much memory -------------------------------------------------------------------------------------------------


def test_a_body_that_would_take_too_much_memory_is_not_read(tmp_path):
    with running(tmp_path, max_memory_bytes=120_000) as service:
        read = []

        async def pieces(count):
            for _ in range(count):
                read.append(1)
                yield b" " * 1000

        kind = {"Content-Type": "application/json"}
        announced = service.request("POST", "/index", content=pieces(11), headers={**kind, "Content-Length": "11000"})
        problem = assert_problem(announced, 507, "memory")
        assert "at most 120000 bytes" in problem["detail"]
        assert "132000" in problem["detail"]
        assert announced.headers["retry-after"] == "1"
        assert read == []
        unannounced = service.request("POST", "/index", content=pieces(100), headers=kind)
        assert_problem(unannounced, 507, "memory")
        assert len(read) == 11
        fits = service.request("POST", "/index", content=pieces(10), headers=kind)
        assert_problem(fits, 400, "invalid_json")
        assert service.request("PUT", "/models/m", content=b" " * 40_000).status_code == 422  # a third of it
        assert_problem(service.request("PUT", "/models/m", content=b" " * 40_001), 507, "memory")


def test_bodies_in_progress_count_together(tmp_path, hold):
    body = orjson.dumps(SEARCH)
    with running(tmp_path, max_memory_bytes=2 * 12 * len(body) + 100) as service:
        held = hold()
        kind = {"Content-Type": "application/json"}

        async def fill_up():
            waiting = [
                asyncio.ensure_future(service.client.post("/search", content=body, headers=kind)) for _ in range(2)
            ]
            await held.until_begun()
            for _ in range(50):
                await asyncio.sleep(0)
            refused = await service.client.post("/search", content=body, headers=kind)
            held.go_on.set()
            return refused, await asyncio.gather(*waiting)

        for _ in range(2):  # what was set aside is given back
            refused, answered = service.run(fill_up())
            assert_problem(refused, 507, "memory")
            assert [response.status_code for response in answered] == [200, 200]
            held.go_on.clear()
            held.begun = 0
        held.go_on.set()


# -- GET /limits -----------------------------------------------------------------------------------------------------

NO_LIMITS = {
    "port",
    "shutdown_seconds",
    "slow_ms",
    "snapshot_minutes",
    "snapshot_keep",
    "page_cache_bytes",
    "filter_cache_bytes",
    "rescore_cache_bytes",
    "jobs_keep",
    "search_processes",
    "training_threads",
}


def test_limits_are_those_of_the_settings_and_none_is_missing(tmp_path):
    service = InProcess(tmp_path / "data", max_limit=77)
    try:
        service.create()
        limits = service.ok("GET", "/limits")
        assert limits["max_limit"] == 77
        assert limits["max_memory_bytes"] is None
        assert limits["max_id_bytes"] == 512
        assert limits["dimensions"] == {"default": DIMS}
        numbers = {
            name
            for name, field in Settings.model_fields.items()
            if {int, float} & {field.annotation, *typing.get_args(field.annotation)}
        }
        assert len(numbers) > 10
        for name in numbers - NO_LIMITS:
            assert limits[name] == getattr(service.settings, name), name
    finally:
        service.close()


def test_limits_are_as_documented(bare):
    schema = bare.app.openapi()["components"]["schemas"]["Limits"]
    assert set(bare.ok("GET", "/limits")) == set(schema["required"]) == set(schema["properties"])
