"""The harness that measures CCQ's service beside others, on tiny data."""

import asyncio
import importlib.util
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from benchmarks.peers import data, others
from benchmarks.peers.__main__ import main
from benchmarks.peers.chroma import Chroma
from benchmarks.peers.client import Load, RequestFailedError, ask, load, request
from benchmarks.peers.contestant import MissingPeerError
from benchmarks.peers.contestants import chosen
from benchmarks.peers.document import BEGIN, END, with_results
from benchmarks.peers.document import main as document
from benchmarks.peers.measure import AtEffort, Result, Searches, enough, of_client
from benchmarks.peers.others import Others
from benchmarks.peers.process import ServerError, serving
from benchmarks.peers.results import Machine, Report
from benchmarks.peers.tables import all_efforts, summary

BUSY = "import time\nwhile time.process_time() < 0.7: pass"
TINY = ["--items", "2000", "--queries", "20", "--seconds", "0.1"]


@pytest.fixture(scope="module")
def tiny():
    return data.make(3000, 30, seed=1)


def test_exact_answers_are_those_of_all_cosines(tiny):
    items = tiny.items.astype(np.float64)
    for i, query in enumerate(tiny.queries.astype(np.float64)):
        cosines = items @ query / np.linalg.norm(items, axis=1)
        assert np.argsort(-cosines)[:10].tolist() == tiny.nearest[i].tolist()
        members = np.flatnonzero(tiny.groups == tiny.wanted[i])
        assert members[np.argsort(-cosines[members])][:10].tolist() == tiny.nearest_in_group[i].tolist()


def test_exact_answers_do_not_depend_on_blocks(tiny, monkeypatch):
    monkeypatch.setattr(data, "_BLOCK", 7)
    assert np.array_equal(data.exact(tiny.items, tiny.queries), tiny.nearest)
    assert data.exact(tiny.items[:4], tiny.queries).shape == (30, 4)


def test_data_depend_on_the_seed_alone(tiny):
    again, other = data.make(3000, 30, seed=1), data.make(3000, 30, seed=2)
    assert np.array_equal(again.items, tiny.items)
    assert np.array_equal(again.queries, tiny.queries)
    assert not np.array_equal(other.items, tiny.items)
    with pytest.raises(ValueError, match="at least one item and one query, got 0 and 5"):
        data.make(0, 5, seed=0)


def test_recall():
    assert data.recall([[1, 2], [9]], [np.array([2, 3]), np.array([9, 8])]) == 0.5


def serve(replies):
    """A server on a thread that answers each request with the next of `replies`, closing where that is None."""
    started, seen = threading.Event(), []

    async def handle(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            seen.append(await reader.readexactly(length))
            reply = replies(len(seen))
            if reply is None:
                break
            status, body = reply
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        writer.close()

    async def run():
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        started.set()
        await server.serve_forever()

    ports = []
    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    assert started.wait(10)
    return ports[0], seen


def test_replies_come_in_the_order_of_requests():
    port, seen = serve(lambda n: (200, b"%d" % n))
    replies = ask(port, (request("POST", "/x", {"n": i}) for i in range(50)), connections=7)
    by_request = {orjson.loads(body)["n"]: b"%d" % (i + 1) for i, body in enumerate(seen)}
    assert replies == [by_request[n] for n in range(50)]


def test_a_failed_request_is_told():
    port, _ = serve(lambda n: (200, b"") if n < 3 else (422, b'{"code":"invalid"}'))
    with pytest.raises(RequestFailedError, match=r'status 422: \{"code":"invalid"\}'):
        ask(port, [request("POST", "/x", {})] * 5, connections=2)
    port, _ = serve(lambda _: None)
    with pytest.raises(RequestFailedError, match="closed the connection"):
        load(port, [request("POST", "/x", {})], 1, 0.2)


def test_load_counts_what_was_answered():
    port, seen = serve(lambda _: (200, b"x"))
    found = load(port, [request("POST", "/x", {})], 4, 0.5)
    assert 0 < found.rate * 0.5 <= len(seen)
    assert 0 < found.p50 <= found.p99


def test_the_client_alone(tiny, tmp_path):
    found = of_client(tiny, tmp_path, 0.2)
    assert set(found) == {"1", "64"}
    assert all(one.rate > 100 for one in found.values())


def test_a_server_that_does_not_start(tmp_path):
    command = ["sh", "-c", "echo no such thing; exit 3"]
    with (
        pytest.raises(ServerError, match="ended with status 3; it printed:\nno such thing"),
        serving(command, 1, tmp_path / "x", "/"),
    ):
        pass


def run(tmp_path, *only):
    file = tmp_path / "results.json"
    words = [word for name in only for word in ("--only", name)]
    result = CliRunner().invoke(main, [*TINY, *words, "--json", str(file)])
    assert result.exit_code == 0, result.output
    return Report.read(file), result.output


def test_ccq_measured(tmp_path):
    report, output = run(tmp_path, "ccq-32", "ccq-32-float16")
    codes, kept = report.results
    assert [at.effort for at in codes.efforts] == [0]
    assert kept.efforts[-1].plain.recall >= 0.97 > codes.efforts[0].plain.recall > 0.3
    for result in report.results:
        assert result.indexed > 0
        assert result.training > 0
        assert result.disk > 0
        found = [one for at in result.efforts for one in (at.plain, at.filtered) if one is not None]
        assert len(found) == len(result.efforts) + 1
        assert min(min(one.one.rate, one.many.rate) for one in found) > 0
        assert result.filtered().recall == pytest.approx(1, abs=0.05)  # a group has hardly more than an item
    assert summary(report) in output
    assert all_efforts(report) in output


@pytest.mark.parametrize(
    ("name", "package"), [("chroma", "chromadb"), ("usearch-f32", "usearch"), ("usearch-i8", "usearch")]
)
def test_peers_measured(tmp_path, name, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    report, _ = run(tmp_path, name)
    (result,) = report.results
    assert package in result.service
    assert max(at.plain.recall for at in result.efforts) > 0.9
    assert any(at.default for at in result.efforts)


def test_what_is_not_installed_is_told(monkeypatch):
    def missing(_self):
        raise MissingPeerError("chroma: expected the package chromadb, which is not installed")

    monkeypatch.setattr(Chroma, "check", missing)
    result = CliRunner().invoke(main, TINY)
    assert result.exit_code == 1
    assert "chromadb, which is not installed: pip install 'ccq-search[peers]'" in result.output


def test_choosing():
    assert [one.name for one in chosen(["ccq-64*"])] == ["ccq-64", "ccq-64-float16", "ccq-64-int8"]
    result = CliRunner().invoke(main, ["--only", "qdrant"])
    assert result.exit_code == 2
    assert "no service is called 'qdrant'; expected a pattern for one of chroma, usearch-f32" in result.output


def searches(recall, rate):
    return Searches(recall, Load(rate / 2, 1.0, 2.0), Load(rate, 20.0, 40.0))


def a_result(name, *efforts):
    return Result(name, f"{name} 1.0", "ef", 3.0, 1000.0, 20.0, 15.0, 30.0, 0.25, list(efforts))


def a_report():
    """A slow one that reaches the target, a fast one that misses it, a fast one that reaches it at its default."""
    missing, reaching = AtEffort(10, False, searches(0.5, 900), None), AtEffort(20, True, searches(0.98, 100), None)
    slow = a_result("slow", missing, reaching)
    vague = a_result("vague", AtEffort(5, True, searches(0.9, 5000), searches(1.0, 50)))
    reaching, better = AtEffort(10, True, searches(0.97, 800), None), AtEffort(20, False, searches(1.0, 700), None)
    fast = a_result("fast", reaching, better)
    machine = Machine("some processor", 2, "3.11")
    return Report(1000, 10, 0, 1.0, 60.0, machine, {"1": Load(9000.0, 0.1, 0.2)}, [slow, vague, fast])


@pytest.mark.parametrize(
    ("recalls", "past_default", "ends"),
    [
        ([0.98], False, False),
        ([0.98, 0.99], True, True),
        ([0.9], True, False),
        ([0.9, 0.95], True, False),
        ([0.95, 0.95], True, True),
        ([0.95, 0.95], False, False),
    ],
)
def test_effort_rises_as_long_as_it_helps(recalls, past_default, ends):
    assert enough(recalls, past_default=past_default) == ends


def test_tables():
    lines = summary(a_report()).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| fast, ef 10", "| slow, ef 20", "| vague, ef 5 †"]
    assert lines[3].split(" | ")[6:] == ["0.980", "50", "1.00 / 2.00", "100", "20.0 / 40.0", "-", "-", "- |"]
    assert lines[4].split(" | ")[-3:] == ["1.000", "1.00", "50 |"]
    names = [line.split(" | ")[0] for line in all_efforts(a_report()).splitlines()[2:]]
    assert names == ["| slow, ef 10", "| **slow, ef 20**", "| **vague, ef 5**", "| **fast, ef 10**", "| fast, ef 20"]


def test_what_others_take():
    before = others._own()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    assert others._own() - before > 0.5
    theirs = Others()
    other = subprocess.Popen([sys.executable, "-c", BUSY])
    while Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.05)
    assert theirs.share() > 0.1  # it has ended, and nobody has waited for it
    other.wait()


def test_the_document(tmp_path):
    file, page = tmp_path / "r.json", tmp_path / "p.md"
    a_report().write(file)
    assert Report.read(file) == a_report()
    page.write_text(f"before\n{BEGIN}\nformer\n{END}\nafter\n")
    for _ in range(2):  # the second time it replaces its own
        assert CliRunner().invoke(document, [str(file), "--page", str(page)]).exit_code == 0
        text = page.read_text()
        assert text.startswith("before\n")
        assert text.endswith("\nafter\n")
        assert text.count(summary(a_report())) == 1
        assert "former" not in text
    with pytest.raises(ValueError, match="expected the marks"):
        with_results(f"{END} {BEGIN}", [])
    file.write_text('{"items": 3}')
    result = CliRunner().invoke(document, [str(file), "--page", str(page)])
    assert result.exit_code == 1
    assert "expected what `python -m benchmarks.peers --json` writes" in result.output
