"""`ccq index`: all kinds of files, into data directories and services, and what goes wrong."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from ccq_cli.settings import read_settings
from ccq_client import Client, __version__
from ccq_core import CCQ
from service.runtime import Runtime
from tests.cli.bulk import ok, refused, stored
from tests.client.kinds import DEFAULT_LIMITS


def test_parquet_of_ones_own(files, tmp_path):
    image, text = (np.load(files / f"{name}.npy")[:4].astype(np.float32) for name in ("image", "text"))
    columns = {
        "id": pa.array([10, 11, 12, 13]),
        "image": pa.array([row.tolist() for row in image]),
        "text": pa.array([text[0].tolist(), None, text[2].tolist(), text[3].tolist()], pa.list_(pa.float32(), 8)),
        "tags": pa.array([["a"], [], None, ["b", "c"]]),
        "year": pa.array([1990, None, 1992, 1993]),
    }
    table = pa.table(columns)
    pyarrow.parquet.write_table(table.slice(0, 3), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(table.slice(3), tmp_path / "2.parquet")
    words = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    ok("index", *words, "--data", tmp_path / "d", "--model", files / "m.ccq", "--batch", 2)
    found, _ = stored(tmp_path / "d")
    assert [(item_id, payload, present) for item_id, payload, present, _ in found] == [
        ("10", {"tags": ["a"], "year": 1990}, [True, True, True]),
        ("11", {"tags": []}, [True, False, False]),
        ("12", {"year": 1992}, [True, True, True]),
        ("13", {"tags": ["b", "c"], "year": 1993}, [True, True, True]),
    ]
    twice = refused("index", words[1], words[0], words[0], "--data", tmp_path / "d")
    assert "1.parquet: row 0 and" in twice
    assert "1.parquet: row 0 are both '10'" in twice


def test_every_verb_that_takes_arrays_takes_parquet(files, tmp_path, url):
    arrays = {name: np.load(files / f"{name}.npy").astype(np.float32) for name in ("image", "text")}
    arrays["text"][:150] = np.nan  # of the first file, all
    columns = {"id": np.arange(300)} | {
        name: pa.array([None if np.isnan(row).any() else row.tolist() for row in array], pa.list_(pa.float32()))
        for name, array in arrays.items()
    }
    words = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for at, word in enumerate(words):
        pyarrow.parquet.write_table(pa.table(columns).slice(150 * at, 150), word, row_group_size=40)
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    named = [f"{name}={tmp_path / name}.npy" for name in arrays]

    for given, out in ((words, "a.npy"), (named, "b.npy")):
        ok("encode", files / "m.ccq", *given, "-o", tmp_path / out)
    assert (np.load(tmp_path / "a.npy") == np.load(tmp_path / "b.npy")).all()
    one, other = (ok("evaluate", *given, "--model", files / "m.ccq", "--json") for given in (words, named))
    assert json.loads(one) == json.loads(other)
    ok("train", *words, "--name", "of-parquet", "--bits", 8, "--url", url)
    ok("train", *named, "--name", "of-arrays", "--bits", 8, "--url", url)
    with Client(url) as client:
        assert client.models.file("of-parquet") == client.models.file("of-arrays")
        client.collections.create("parquet", "of-parquet")
        to = ("--collection", "parquet", "--url", url)
        ok("index", *words, *to)
        found = json.loads(ok("search", *words, "--row", 200, "--json", *to))["results"]
        assert found == json.loads(ok("search", *named, "--row", 200, "--json", *to))["results"]
        client.collections.delete("parquet")

    wide = pa.table({"image": [[1.0, 2.0]] * 150})
    pyarrow.parquet.write_table(wide, words[1])
    said = refused("encode", files / "m.ccq", *words, "-o", tmp_path / "c.npy", "--column", "image")
    assert "column 'image': expected lists of one length, got [2, 12]" in said
    alone = refused("encode", files / "m.ccq", f"image={words[0]}", "-o", tmp_path / "c.npy")
    assert "1.parquet alone, whose columns are called by modality" in " ".join(alone.split())
    mixed = refused("encode", files / "m.ccq", words[0], named[0], "-o", tmp_path / "c.npy")
    assert "or only files FILE.parquet" in mixed
    pyarrow.parquet.write_table(pa.table({"id": ["a"]}), tmp_path / "none.parquet")
    for verb in (("evaluate",), ("train", "-o", tmp_path / "x.ccq")):
        said = refused(*verb, tmp_path / "none.parquet")
        assert "none.parquet: expected columns of lists of floats, called by modality" in said
    assert "no modalities" not in ok("encode", files / "m.ccq", words[0], "-o", tmp_path / "d.npy")
    left = ok("encode", files / "m.ccq", words[0], "-o", tmp_path / "d.npy", "--column", "image")
    assert "note: columns of lists of floats that --column does not name are no modalities: text" in left
    assert "expected a name FILE.npy" in refused("encode", files / "m.ccq", *named, "-o", tmp_path / "d.npz")
    for verb in (("evaluate", *named), ("encode", files / "m.ccq", *named, "-o", tmp_path / "c.npy")):
        assert "--column is for files FILE.parquet" in refused(*verb, "--column", "image")


def test_parquet_faults_are_told_by_file_and_row(files, tmp_path):
    image = np.load(files / "image.npy")[:6].tolist()

    def said(**columns):
        pyarrow.parquet.write_table(pa.table({"id": list("abcdef"), "image": image, **columns}), tmp_path / "f.parquet")
        return refused("index", tmp_path / "f.parquet", "--data", tmp_path / "d", "--model", files / "m.ccq")

    bad = [row[:] for row in image]
    bad[4][3] = float("inf")
    assert "f.parquet: row 4: column 'image': number 3: inf" in said(image=bad)
    bad[4] = [1.0]
    assert "f.parquet: rows 0 to 5: column 'image': expected lists of one length" in said(image=bad)
    assert "f.parquet: row 1 and" in said(id=list("abcdeb"))
    assert "row 5 are both 'b'" in said(id=list("abcdeb"))
    assert "f.parquet: row 2: id: expected a string or an integer" in said(id=["a", "b", None, "d", "e", "f"])
    assert "f.parquet: row 0: cannot be written as JSON" in said(blob=[b"x"] * 6)
    assert "expected columns of lists of floats" in said(image=list(range(6)))
    assert "holds no codes" in refused("index", tmp_path / "f.parquet", "--codes", "--data", tmp_path / "d")
    assert "rows[0]: unknown modality 'sound', expected image, text" in said(sound=image)
    assert stored(tmp_path / "d") == ([], [])


def test_lists_of_integers_are_features_where_they_are_named(files, tmp_path):
    """Word counts, say: training and indexing take the same columns."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((300, 12)).astype(np.float32)
    counts = rng.integers(0, 9, (300, 8))
    table = pa.table({"id": np.arange(300), "image": image.tolist(), "text": counts.tolist(), "rgb": [[1, 2, 3]] * 300})
    pyarrow.parquet.write_table(table, tmp_path / "f.parquet")
    quick = ("--bits", 8, "--iterations", 1, "--effort", 0)

    said = ok("train", tmp_path / "f.parquet", "-o", tmp_path / "one.ccq", *quick)
    assert "lists of integers are taken for payload: text, rgb; to have modalities of them name all that are" in said
    assert list(CCQ.load(tmp_path / "one.ccq").dims) == ["image"]

    columns = ("--column", "image", "--column", "text")
    said = ok("train", tmp_path / "f.parquet", "-o", tmp_path / "two.ccq", *columns, *quick)
    assert "taken for payload" not in said
    assert dict(CCQ.load(tmp_path / "two.ccq").dims) == {"image": 12, "text": 8}
    ok("index", tmp_path / "f.parquet", *columns, "--data", tmp_path / "d", "--model", tmp_path / "two.ccq")
    found, _ = stored(tmp_path / "d")
    assert {(str(payload), *present) for _, payload, present, _ in found} == {("{'rgb': [1, 2, 3]}", True, True, True)}

    for verb in (("train", "-o", tmp_path / "x.ccq"), ("index", "--data", tmp_path / "d")):
        said = refused(verb[0], tmp_path / "f.parquet", *verb[1:], "--column", "id")
        assert "f.parquet: --column id: expected a column of lists of numbers (image, text, rgb)" in said
        assert "--column is for files FILE.parquet" in refused(*verb, f"image={files}/image.npy", "--column", "image")


def test_without_ids_it_is_said_what_the_ids_are(files, tmp_path):
    words = [f"image={files / 'image.npy'}", "--data", tmp_path / "d", "--model", files / "m.ccq"]
    note = "note: without ids the numbers of rows are the ids; other items that have them are replaced"
    assert note in ok("index", *words)
    (tmp_path / "ids.txt").write_text("".join(f"i{row}\n" for row in range(300)))
    assert note not in ok("index", *words, "--ids", tmp_path / "ids.txt")


@pytest.mark.parametrize(("line", "got"), [("", 0), ("x" * 513, 513)])
def test_ids_that_can_be_none_are_told_by_line(files, tmp_path, line, got):
    lines = [f"i{row}" for row in range(300)]
    lines[7] = line
    (tmp_path / "ids.txt").write_text("\n".join(lines) + "\n")
    words = [f"image={files / 'image.npy'}", "--data", tmp_path / "d", "--model", files / "m.ccq"]
    said = refused("index", *words, "--ids", tmp_path / "ids.txt")
    assert f"ids.txt: line 8: expected an id of 1 to 512 bytes, got {got}" in said


def test_faults_of_a_slice_leave_those_before_it(rows, files):
    words, place = rows
    lines = (place / "p.jsonl").read_text().splitlines()
    lines[37] = json.dumps({"x": "y" * 70_000})  # what only the service minds
    (place / "p.jsonl").write_text("\n".join(lines))
    new = ["--data", place / "d", "--model", files / "m.ccq", "--batch", 10]
    said = refused("index", *words, *new)
    assert "rows[37].payload: expected at most 65536 bytes" in said
    assert "stopped: the first 29 items are stored, row 30 of 60 is next\n" in said
    assert len(stored(place / "d")[0]) == 29
    lines[37] = "{"
    (place / "p.jsonl").write_text("\n".join(lines))
    assert "p.jsonl: line 38: not valid JSON" in refused("index", *words, *new)
    assert "rows[37].payload: not valid JSON" in refused("index", *words, *new, "--no-check")
    lines[37] = "{}"
    (place / "p.jsonl").write_text("\n".join(lines))
    ok("index", *words, *new)
    found, _ = stored(place / "d")
    assert len({item_id for item_id, *_ in found}) == len(found) == 58


@pytest.mark.parametrize("check", ["--check", "--no-check"])
@pytest.mark.parametrize(("first", "second"), [(2, 4), (2, 58)])
def test_ids_that_come_twice(rows, files, first, second, check):
    words, place = rows
    ids = [f"item {i}" for i in range(60)]
    ids[second] = ids[first]
    (place / "ids.txt").write_text("\n".join(ids))
    said = refused("index", *words, "--data", place / "d", "--model", files / "m.ccq", "--batch", 10, check)
    assert f"ids.txt: lines {first + 1} and {second + 1} are both 'item 2'" in said
    assert len(stored(place / "d")[0]) == (0 if check == "--check" or second == 4 else 48)


def test_items_in_one_file(rows, files):
    words, place = rows
    lines = [json.dumps({"id": f"line\n{i}", "payload": {"n": i}}) for i in range(60)]
    new = ["--data", place / "d", "--model", files / "m.ccq"]

    def said(line):
        (place / "i.jsonl").write_text("\n".join([*lines[:33], line, *lines[34:]]))
        return refused("index", *words[:2], "--items", place / "i.jsonl", *new)

    for line, why in [
        ("7", "expected an object of id and payload, got 7"),
        ('{"id": 7}', "id: expected a string, got 7"),
        ('{"id": "a", "payload": 7}', "payload: expected an object or null, got 7"),
        ('{"id": "a", "title": "b"}', "expected an object of id and payload"),
        (
            '{"id": "a", "payload": {"n": 123456789012345678901234567890}}',
            "payload.n: expected an integer of at most 64 bits",
        ),
        ("{", "not valid JSON"),
    ]:
        assert f"i.jsonl: line 34: {why}" in said(line)
    assert "id: expected 1 to 512 bytes of UTF-8, got 0" in said('{"id": ""}')
    (place / "i.jsonl").write_text("\n".join(lines) + "\n")
    ok("index", *words[:2], "--items", place / "i.jsonl", *new)
    found, _ = stored(place / "d")
    assert [item[:2] for item in found] == [(f"line\n{i}", {"n": i}) for i in range(60) if i % 30]


def test_what_does_not_go_together(rows, directory, files, url, tmp_path):
    words, _ = rows
    new = ["--data", tmp_path / "new"]
    cases = [
        ([*words, *new, "--url", url], "expected --data or --url, got both"),
        ([*words, "--model", files / "m.ccq"], "are for --data"),
        ([*words, *new, "--keep", "int8"], "expected --model too"),
        ([*words, *new], "no such directory; to make it, give --model"),
        (
            [*words, "--data", directory, "--collection", "other"],
            "has no collection 'other'; to create it, give --model",
        ),
        ([*words, *new, "--model", files / "m.ccq", "--collection", "a/b"], "collection 'a/b': expected a name"),
        ([*words, *new, "--model", files / "ids.txt"], "ids.txt: no CCQ model: it is text"),
        ([*words, "--data", directory, "--model", files / "m.ccq", "--keep", "int8"], "exists with keep 'none'"),
        ([*words, *new, "--codes"], "--codes is for what `ccq export` wrote"),
        ([*words, *new, "--items", files / "items.jsonl"], "expected --items, or --ids and --payloads"),
        ([tmp_path, *new], "expected a directory that `ccq export` wrote"),
        ([tmp_path / "none.parquet", *new], "No such file"),
        ([tmp_path, *new, "--ids", files / "ids.txt"], "are for arrays"),
        ([*words[:2], *new, "--ids", files / "ids.txt"], "expected 60 lines"),
        (
            [f"image={tmp_path / 'text.npy'}", "--data", directory],
            "rows[1].image: expected 12 numbers, got 8",
        ),
        ([f"sound={tmp_path / 'text.npy'}", "--data", directory], "unknown modality 'sound', expected image, text"),
    ]
    for arguments, why in cases:
        assert why in refused("index", *arguments), arguments
    other = tmp_path / "m2" / "m.ccq"
    other.parent.mkdir()
    CCQ(bits=8).fit({"image": np.load(files / "image.npy")}).save(other)
    assert "model 'm' cannot be replaced" in refused("index", *words, "--data", directory, "--model", other)
    ok("export", directory, tmp_path / "out")
    said = refused("index", tmp_path / "out", "--codes", *new, "--model", other)
    assert "codes of one model mean nothing to another" in said


def test_a_directory_in_use(rows, directory):
    words, place = rows
    runtime = Runtime.open(read_settings(data=directory))
    try:
        command = [sys.executable, "-m", "ccq_cli"]
        for arguments, instead in (
            (["index", *words, "--data", directory], "--url"),
            (
                ["export", directory, place / "out"],
                "its URL",
            ),
        ):
            ended = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
            assert ended.returncode == 1
            assert f"is in use by process {os.getpid()}: stop that one" in ended.stderr
            assert f"or name the service that uses it by {instead}" in ended.stderr
    finally:
        runtime.close()


@pytest.fixture
def many(files, tmp_path):
    """Files of 30,000 rows."""
    for name in ("image", "text"):
        np.save(tmp_path / f"{name}.npy", np.tile(np.load(files / f"{name}.npy"), (100, 1)))
    return [f"{name}={tmp_path / name}.npy" for name in ("image", "text")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_in_the_middle_and_done_again(many, files, tmp_path, number):
    """Whole slices in order are there, and the same command completes them."""
    data = tmp_path / "data"
    new = ["--data", data, "--model", files / "m.ccq", "--batch", 100, "--no-check"]
    command = [sys.executable, "-m", "ccq_cli", "index", *many, *map(str, new)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 30
        while not (data / "ccq.sqlite-wal").exists() or (data / "ccq.sqlite-wal").stat().st_size < 1_000_000:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    found, _ = stored(data)
    assert 0 < len(found) < 30_000
    assert len(found) % 100 == 0
    assert [item_id for item_id, *_ in found] == [str(i) for i in range(len(found))]
    if number == signal.SIGINT:
        assert process.returncode == 1
        assert f"stopped: the first {len(found):,} items are stored, row {len(found):,} of 30,000 is next" in said
    ok("index", *many, *new[:4])
    again, _ = stored(data)
    assert len(again) == 30_000
    assert {item_id for item_id, *_ in again} == {str(i) for i in range(30_000)}


@pytest.fixture
def busy():
    """A web server that answers as `answers` say, the last for ever; `taken` are the bodies that it said to have."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                status, headers = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                server.times.append(time.monotonic())
                if status == 200:
                    server.taken.append([item["id"] for item in body["items"]])
            content = b'{"indexed": 1}' if status == 200 else b'{"code": "busy", "title": "busy", "detail": "later"}'
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self):
            answer = {"version": __version__} if self.path == "/version" else asdict(DEFAULT_LIMITS)
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.lock, server.times, server.taken = threading.Lock(), [], []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_service_that_asks_for_patience_gets_everything_once(busy, rows):
    words, _ = rows
    busy.answers = [(503, {"Retry-After": "1"}), (429, {}), (507, {"Retry-After": "0"}), (200, {})]
    url = f"http://127.0.0.1:{busy.server_port}"
    assert "indexed 58 items" in ok("index", *words, "--url", url, "--batch", 10, "--in-flight", 3)
    assert sorted(item_id for ids in busy.taken for item_id in ids) == sorted(f"item {i}" for i in range(60) if i % 30)
    assert len(busy.times) == 6 + 3
    assert busy.times[-1] - busy.times[0] >= 0.9


def test_a_service_that_is_away_for_a_moment(busy, rows):
    """A proxy in front of one that starts anew says no more than that."""
    words, _ = rows
    busy.answers = [(200, {}), (503, {}), (502, {}), (200, {})]
    url = f"http://127.0.0.1:{busy.server_port}"
    assert "indexed 58 items" in ok("index", *words, "--url", url, "--batch", 10, "--in-flight", 1)
    assert [len(ids) for ids in busy.taken] == [9, 10, 10, 9, 10, 10]


@pytest.mark.parametrize(("status", "doubt"), [(500, "; some behind it may be stored too"), (507, ""), (422, "")])
def test_other_refusals_end_it(busy, rows, status, doubt):
    words, _ = rows
    busy.answers = [(200, {}), (status, {})]
    url = f"http://127.0.0.1:{busy.server_port}"
    said = refused("index", *words, "--url", url, "--batch", 10, "--in-flight", 1)
    assert f"Error: {'busy: ' if status >= 500 else ''}later" in said
    assert f"stopped: the first 9 items are stored, row 10 of 60 is next{doubt}\n" in said


def test_an_interrupt_ends_the_patience(busy, rows):
    words, _ = rows
    busy.answers = [(200, {}), (503, {"Retry-After": "600"})]
    url = f"http://127.0.0.1:{busy.server_port}"
    command = [sys.executable, "-m", "ccq_cli", "index", *map(str, words), "--url", url]
    process = subprocess.Popen([*command, "--batch", "10", "--in-flight", "1"], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while len(busy.times) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "stopped: the first 9 items are stored, row 10 of 60 is next\n" in said
    assert busy.taken == [[f"item {i}" for i in range(1, 10)]]
