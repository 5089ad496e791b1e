"""What goes wrong around the server: a full disk, a clock that jumps, a second process on the same directory."""

import random
import signal
import subprocess
import sys
import time

import pytest

from service.store.check import check
from tests.service.harness import ServerProcess, assert_problem, features, item

# -- a full disk -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 6 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"this user cannot mount a file system: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_refuses_writes_and_nothing_else(small_disk, model_path):
    (small_disk / "other").write_bytes(b"x" * (1 << 20))
    server = ServerProcess(small_disk / "data", model_path)
    try:
        server.wait_until_ready()
        held, refused = _fill_up(server)
        assert refused
        found = server.client.post("/search", json={"query": features(3), "limit": 10_000, "with_payload": ["write"]})
        assert {hit["id"]: hit["payload"]["write"] for hit in found.json()["results"]} == held
        assert server.client.get("/readyz").status_code == 200
        assert server.client.post("/facets", json={"key": "write", "limit": 1}).json()["total"] == len(held)
        (small_disk / "other").unlink()
        _index(server, 900, held)
        server.kill()
        again = ServerProcess(small_disk / "data")
        try:
            again.wait_until_ready()
            listed = again.client.get("/items", params={"limit": 10_000}).json()["items"]
            assert {one["id"]: one["payload"]["write"] for one in listed} == held
        finally:
            assert again.stop() == 0
        assert [part.faults for part in check(small_disk / "data") if part.faults] == []
    finally:
        server.kill()


def _fill_up(server):
    """Write until nothing more is taken: id to the write that was acknowledged last, and how many were refused."""
    held, refused = {}, 0
    for write in range(600):
        if _index(server, write, held) == 507:
            refused += 1
        if refused == 20:
            break
    return held, refused


def _index(server, write, held):
    items = [item((7 * write + i) % 400, write=write, fill="x" * 6000) for i in range(12)]
    reply = server.client.post("/index", json={"items": items})
    if reply.status_code == 507:
        assert_problem(reply, 507, "storage_full")
    else:
        assert reply.status_code == 200, reply.text
        held |= {one["id"]: write for one in items}
    return reply.status_code


# -- a clock that jumps ----------------------------------------------------------------------------------------------


def test_nothing_depends_on_the_clock(filled, monkeypatch):
    rng = random.Random(5)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + rng.choice([-1e9, -3600, 0, 3600, 1e9]))
    expected = {found["id"] for found in filled.get("/items").json()["items"]}
    for i in range(30):
        filled.ok("POST", "/index", {"items": [item(100 + i)]})
        expected.add(f"item-{100 + i}")
        if i % 3 == 0:
            filled.ok("DELETE", f"/items/item-{i}")
            expected.remove(f"item-{i}")
        if i % 10 == 5:
            filled.restart()
        found = filled.ok("GET", "/items?limit=1000")["items"]
        assert {one["id"] for one in found} == expected
        found = filled.ok(
            "POST", "/search", {"query": features(i), "database": ["image", "text", "pair"], "limit": 1000}
        )
        assert {hit["id"] for hit in found["results"]} == expected
        assert found["took_ms"] >= 0


# -- a second process ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stopped", [False, True])
def test_a_second_server_is_refused_in_one_line(tmp_path, model_path, stopped):
    data = tmp_path / "data"
    first = ServerProcess(data, model_path)
    try:
        first.wait_until_ready()
        assert first.client.post("/index", json={"items": [item(0)]}).status_code == 200
        if stopped:
            first.process.send_signal(signal.SIGSTOP)
        for command in (["serve", "--port", "0"], ["check"]):
            second = subprocess.run(
                [sys.executable, "-m", "ccq_cli", *command, "--data", str(data)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert second.returncode == 1
            assert second.stderr == (
                f"Error: data directory {data} is in use by process {first.process.pid}: stop that one, or choose "
                "another directory\n"
            )
        first.process.send_signal(signal.SIGCONT)
        assert first.client.post("/index", json={"items": [item(1)]}).status_code == 200
        assert len(first.client.get("/items").json()["items"]) == 2
    finally:
        first.process.send_signal(signal.SIGCONT)
        first.kill()
