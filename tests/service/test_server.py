"""The server as a process: addresses, one process per directory, the default model, and ending in order."""

import asyncio
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from ccq_core import CCQ
from ccq_core.errors import ModelFileError
from service import errors
from service.runtime import Runtime
from service.server import serve
from service.settings import Settings
from service.store import segments
from service.store.directory import LOCK_NAME
from service.tables import Tables
from tests.service.harness import (
    MODEL_FILE,
    PAIRS,
    InProcess,
    ServerProcess,
    assert_problem,
    features,
    item,
)


@pytest.fixture
def server(tmp_path, model_path):
    server = ServerProcess(tmp_path / "data", model_path)
    yield server
    if server.process.poll() is None:
        server.kill()


def test_it_says_where_it_listens_and_ends_in_order(server):
    assert not server.url.endswith(":0")
    assert server.client.get("/readyz").json() == {"status": "ready"}
    assert server.client.get("/collections/default").json()["model"] == "tiny"
    assert server.stop() == 0


def test_a_second_process_on_the_directory_is_refused(server, tmp_path):
    data = tmp_path / "data"
    with pytest.raises(errors.DirectoryInUseError) as refused:
        serve(Settings(data=data, port=0))
    assert str(data) in str(refused.value)
    assert f"process {server.process.pid}" in str(refused.value)
    assert (data / LOCK_NAME).read_text() == f"{server.process.pid}\n"
    assert server.client.get("/livez").status_code == 200
    server.kill()
    Runtime.open(Settings(data=data)).close()  # the lock went with the process


def test_an_address_in_use_is_told_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(errors.AddressError) as refused:
            serve(Settings(data=tmp_path / "data", port=port))
    assert str(refused.value) == f"cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert not (tmp_path / "data").exists()


def test_an_address_that_is_no_address(tmp_path):
    with pytest.raises(errors.AddressError, match=r"cannot listen on no\.such\.host\.invalid port 0: "):
        serve(Settings(data=tmp_path, host="no.such.host.invalid", port=0))


def test_requests_in_progress_are_finished_before_it_ends(server):
    body = json.dumps({"items": [item(i) for i in range(100)]}).encode()

    def pieces():
        yield body[:1000]
        time.sleep(0.3)  # the server has the request's head by now
        server.process.terminate()
        time.sleep(0.3)
        yield body[1000:]

    reply = server.client.post("/index", content=pieces(), headers={"Content-Type": "application/json"})
    assert reply.json()["indexed"] == 100
    assert server.stop() == 0


def test_large_bodies_are_refused_over_a_real_connection(server):
    def pieces():
        for _ in range(100):
            yield b" " * (1 << 20)

    kind = {"Content-Type": "application/json"}
    assert_problem(server.client.post("/index", content=pieces(), headers=kind), 413, "body_too_large")
    assert_problem(server.client.post("/index", content=b" " * (100 << 20), headers=kind), 413, "body_too_large")
    assert server.client.get("/collections/default").json()["items"] == 0


# -- the default model -----------------------------------------------------------------------------------------------


def opened(data, model_path=None, **settings):
    runtime = Runtime.open(Settings(data=data, **settings), model_path)
    try:
        return [(entry.record.name, entry.record.model) for entry in runtime.catalog.entries()]
    finally:
        runtime.close()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_the_default_collection_is_created_with_the_model_once(tmp_path, model_path):
    data = tmp_path / "data"
    assert opened(data) == []
    for _ in range(2):
        assert opened(data, model_path, default_collection="mine") == [("mine", "tiny")]


def test_another_model_than_the_collections_is_refused(tmp_path, model_path):
    data = tmp_path / "data"
    opened(data, model_path)
    other = CCQ(bits=8, iterations=1).fit(PAIRS).to_bytes()
    with pytest.raises(errors.DefaultModelError, match="collection 'default' has model 'tiny', not 'other'"):
        opened(data, write(tmp_path / "other.ccq", other))
    with pytest.raises(errors.DefaultModelError, match="model 'tiny' cannot be replaced by another file: used by"):
        opened(data, write(tmp_path / "tiny.ccq", other))
    assert opened(data, model_path) == [("default", "tiny")]


def test_model_files_that_cannot_be_used_do_not_start(tmp_path):
    with pytest.raises(ModelFileError):
        opened(tmp_path / "data", write(tmp_path / "m.ccq", MODEL_FILE[:-5]))
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "data", tmp_path / "nothing.ccq")
    with pytest.raises(errors.DefaultModelError, match="expected a name of a letter or digit"):
        serve(Settings(data=tmp_path / "data"), write(tmp_path / "my model.ccq", MODEL_FILE))
    assert opened(tmp_path / "data") == []


# -- loading ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_loading(monkeypatch):
    """Loading stops after the first chunk of items, until the event is set."""
    go_on, loading = threading.Event(), threading.Event()
    original = Tables.append_records

    def append(self, *rest):
        original(self, *rest)
        if loading.is_set():
            go_on.wait(20)
        loading.set()

    whole = segments.read

    def in_parts(*given):
        for seqs, data in whole(*given):
            size = len(data) // len(seqs)
            for lo in range(0, len(seqs), 20):
                yield seqs[lo : lo + 20], data[lo * size : (lo + 20) * size]

    monkeypatch.setattr(segments, "read", in_parts)
    monkeypatch.setattr(Tables, "append_records", append)
    yield go_on, loading
    go_on.set()


def test_while_a_collection_loads_the_server_answers(filled, slow_loading):
    go_on, loading = slow_loading
    filled._stop()
    filled._open()
    assert loading.wait(20)
    time.sleep(0.05)
    assert filled.get("/livez").status_code == 200
    not_ready = filled.get("/readyz")
    problem = assert_problem(not_ready, 503, "not_ready")
    assert not_ready.headers["retry-after"] == "1"
    assert problem["errors"] == [
        {"pointer": "/collections/default", "detail": "collection 'default' is being loaded: 20 of 60 items"}
    ]
    for response in (
        filled.post("/search", {"query": features(0)}),
        filled.post("/index", {"items": [item(0)]}),
        filled.get("/items"),
        filled.delete("/items/item-0"),
    ):
        assert_problem(response, 503, "collection_loading")
        assert response.headers["retry-after"] == "1"
    assert filled.ok("GET", "/collections/default")["state"] == "loading"
    filled.create("other")
    assert filled.ok("POST", "/collections/other/index", {"items": [item(0)]})["indexed"] == 1
    go_on.set()
    filled.wait_until_ready()
    assert filled.ok("GET", "/collections/default")["items"] == 60


def test_a_server_that_is_stopped_while_loading_ends(filled, slow_loading):
    go_on, loading = slow_loading
    filled._stop()
    filled._open()
    assert loading.wait(20)
    threading.Timer(0.1, go_on.set).start()
    filled.restart()
    assert filled.ok("GET", "/collections/default")["items"] == 60


def test_a_collection_that_is_deleted_while_it_loads(filled, slow_loading):
    go_on, loading = slow_loading
    filled._stop()
    filled._open()
    assert loading.wait(20)
    assert filled.delete("/collections/default").status_code == 204
    go_on.set()
    filled.catalog._loader.join()
    assert_problem(filled.get("/items"), 404, "collection_not_found")
    assert filled.get("/readyz").status_code == 200


def test_the_event_loop_is_free_while_a_large_body_is_handled(tmp_path):
    service = InProcess(tmp_path, max_batch_items=100_000, max_body_bytes=100 << 20)
    service.create()
    body = {"items": [item(i) for i in range(30_000)]}

    async def probe_meanwhile():
        indexing = asyncio.ensure_future(service.client.post("/index", json=body))
        answered = 0
        while not indexing.done():
            assert (await service.client.get("/livez")).status_code == 200
            answered += not indexing.done()
            await asyncio.sleep(0.001)
        return answered, await indexing

    try:
        answered, reply = service.run(probe_meanwhile())
        assert reply.json()["indexed"] == 30_000
        assert answered >= 20  # on the event loop the work would let in two or three
    finally:
        service.close()


@pytest.mark.parametrize("host", ["é..b", "x" * 300])
def test_a_host_name_that_is_none(host, tmp_path):
    with pytest.raises(errors.AddressError, match="cannot listen on"):
        serve(Settings(data=tmp_path / "data", host=host, port=0))


def test_a_model_file_whose_name_ends_in_a_line_feed(tmp_path):
    with pytest.raises(errors.DefaultModelError, match="expected a name of"):
        serve(Settings(data=tmp_path / "data", port=0), tmp_path / "t\n.ccq")
