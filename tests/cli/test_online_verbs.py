"""Verbs that talk to a running service: index, search, health, demo; and curl as the README shows it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from click.testing import CliRunner

from ccq_cli.main import main
from ccq_cli.settings import unknown_variables
from ccq_client import Client
from ccq_core import CCQ, CodeIndex
from tests.cli.bulk import refused


def ccq(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def indexed(files, url):
    arrays = [f"image={files / 'image.npy'}", f"text={files / 'text.npy'}"]
    options = ["--ids", files / "ids.txt", "--payloads", files / "items.jsonl", "--batch", 70, "--url", url]
    result = ccq("index", *arrays, *options)
    assert result.exit_code == 0, result.output
    assert "indexed 300 items into collection default" in result.output
    return url


def test_health(url):
    result = ccq("health", "--url", url)
    assert (result.exit_code, result.output) == (0, "ready\n")


@pytest.mark.parametrize("database", ["image", "text", "pair"])
def test_search_answers_what_the_library_answers(indexed, files, database):
    model = CCQ.load(files / "m.ccq")
    arrays = {name: np.load(files / f"{name}.npy") for name in ("image", "text")}
    index = CodeIndex(model)
    index.add(
        [f"item-{i}" for i in range(300)], model.encode(arrays if database == "pair" else {database: arrays[database]})
    )
    hits = index.search({"text": arrays["text"][7:8]}, 5)
    result = ccq(
        "search",
        f"text={files / 'text.npy'}",
        "--row",
        7,
        "--database",
        database,
        "--limit",
        5,
        "--json",
        "--url",
        indexed,
    )
    assert result.exit_code == 0, result.output
    reply = json.loads(result.stdout)["results"]
    assert [hit["id"] for hit in reply] == hits.ids[0].tolist()
    assert [hit["distance"] for hit in reply] == pytest.approx(hits.distances[0].tolist(), abs=1e-6)
    assert reply[0]["payload"]["title"].startswith("n° ")


def test_search_prints_a_table(indexed, files):
    result = ccq("search", "id=item-3", "--database", "text", "--database", "image", "--limit", 4, "--url", indexed)
    assert result.exit_code == 0, result.output
    assert "item-3 " not in result.output
    assert re.search(r"\d ms", result.output)


def test_search_with_a_filter(indexed, files):
    condition = json.dumps({"must": [{"key": "even", "match": {"value": 1}}]})
    query = f"image={files / 'image.npy'}"
    result = ccq("search", query, "--limit", 50, "--filter", condition, "--json", "--url", indexed)
    assert {hit["payload"]["even"] for hit in json.loads(result.stdout)["results"]} == {1}
    assert ccq("search", query, "--filter", "{", "--url", indexed).exit_code == 2


def replies(url, *arguments):
    result = ccq("search", *arguments, "--json", "--url", url)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["results"]


def test_search_by_examples(indexed, files):
    found = replies(indexed, "id=item-3", "id=item-4", "--unlike", "item-5", "--limit", 300)
    assert {"item-3", "item-4", "item-5"}.isdisjoint(hit["id"] for hit in found)
    assert len(found) == 297
    assert found != replies(indexed, "id=item-3", "id=item-4", "--limit", 300)
    spelled = replies(indexed, f"text={files / 'text.npy'}", "--row", 3, "--unlike", "item-5", "--limit", 300)
    assert len(spelled) == 299
    assert len(replies(indexed, "id=item-3", "--unlike", "item-5", "--limit", 300)) == 298


def test_search_in_pages_above_a_threshold_with_parts_of_payloads(indexed):
    found = replies(indexed, "id=item-3", "--limit", 20)
    assert replies(indexed, "id=item-3", "--limit", 5, "--offset", 10) == found[10:15]
    above = replies(indexed, "id=item-3", "--limit", 20, "--score-threshold", found[7]["score"])
    assert above == [hit for hit in found if hit["score"] >= found[7]["score"]]
    cut = replies(indexed, "id=item-3", "--payload", "even", "--payload", "x.y", "--limit", 3)
    assert [hit["payload"] for hit in cut] == [{"even": hit["payload"]["even"]} for hit in found[:3]]
    for wrong in ("nan", "inf", "high"):
        assert ccq("search", "id=item-3", "--score-threshold", wrong, "--url", indexed).exit_code == 2


def test_search_in_groups(indexed):
    found = replies(indexed, "id=item-3", "--group-by", "even", "--group-size", 4)
    assert sorted(group["key"] for group in found) == [0, 1]
    for group in found:
        assert [hit["payload"]["even"] for hit in group["hits"]] == [group["key"]] * 4
    result = ccq("search", "id=item-3", "--group-by", "even", "--offset", 1, "--url", indexed)
    assert result.exit_code == 0, result.output
    assert " group " in result.output
    rows = [line for line in result.output.splitlines() if "item-" in line]
    assert len(rows) == 1
    assert re.search(rf"2\W+{found[1]['key']}\W+{found[1]['hits'][0]['id']}\b", rows[0])


def test_problems_of_the_service_are_told_in_words(indexed, files):
    cases = [
        (["search", f"image={files / 'text.npy'}"], "expected 12 numbers, got 8"),
        (["search", f"text={files / 'text.npy'}", "--row", 300], "text has 300 rows"),
        (["search", "id=nobody"], "nobody"),
        (["search", "id=item-1", "--collection", "nowhere"], "nowhere"),
        (["index", f"image={files / 'text.npy'}"], "expected vectors of 12 numbers, got 8"),
        (["index", f"image={files / 'image.npy'}", "--ids", files / "m.ccq"], ""),
    ]
    for arguments, words in cases:
        result = ccq(*arguments, "--url", indexed)
        assert result.exit_code == 1, arguments
        assert words in result.output
        assert "Traceback" not in result.output


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(indexed):
    body = json.dumps({"query_id": "item-5", "database": "image", "limit": 3})
    command = ["curl", "-s", f"{indexed}/search", "-H", "Content-Type: application/json", "-d", body]
    reply = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(reply["results"]) == 3


def test_demo_shows_searches_in_both_directions():
    result = ccq("demo")
    assert result.exit_code == 0, result.output
    assert "1,849 emoji over HTTP" in result.output
    words = next(line for line in result.output.splitlines() if line.lstrip("│┃ ").startswith("cat "))
    assert len(set("🐈🐱😾😽😼😸😺😻😹😿🙀") & set(words)) > 4
    assert "4. Words by pictures" in result.output
    pictures = next(line for line in result.output.splitlines() if "│ 🇯🇵" in line)
    assert pictures.count("flag: ") > 1


def test_demo_with_words_of_ones_own():
    result = ccq("demo", "--words", "dolphin")
    assert result.exit_code == 0, result.output
    assert "🐬" in result.output
    assert "Kept" not in result.output
    unknown = ccq("demo", "--bits", 16, "--words", "xyzzy")
    assert unknown.exit_code == 1
    assert "xyzzy" in unknown.output


def test_demo_twice_in_one_directory_with_other_settings(tmp_path):
    for bits in (8, 16, 8):
        result = ccq("demo", "--data", tmp_path / "d", "--bits", bits, "--words", "dolphin")
        assert result.exit_code == 0, result.output
        store = tmp_path / "d" / f"{bits}-bits" / "store"
        assert f"`ccq serve --data {store}` serves it again" in result.output
        assert store.is_dir()
    (tmp_path / "file").touch()
    result = ccq("demo", "--data", tmp_path / "file")
    assert result.exit_code == 2
    assert "is a file" in result.output


@pytest.fixture
def started_demo(tmp_path):
    """A demo that serves, started in surroundings that must not matter; its process and the service's URL."""
    (tmp_path / "here").mkdir()
    (tmp_path / "temporary").mkdir()
    for module in ("http", "numpy", "click"):
        (tmp_path / "here" / f"{module}.py").write_text("raise SystemExit('a file of the working directory was run')")
    surroundings = {
        "TMPDIR": str(tmp_path / "temporary"),
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "socks5://127.0.0.1:9",
        "CCQ_PORT": "many",
        "CCQ_DATA": str(tmp_path / "mine"),
        "ccq_default_collection": "mine",
        "CCQ_MODEL": "/nowhere",
    }
    command = [sys.executable, "-P", "-m", "ccq_cli", "demo", "--bits", "8", "--words", "dolphin", "--keep-serving"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path / "here",
        env={**os.environ, **surroundings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Serving"):
                break
        found = re.search(r"http://[^,]*", lines[-1])
        assert found, lines
        yield process, found[0]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_demo_leaves_nothing_behind(started_demo, tmp_path, number):
    process, url = started_demo
    assert ccq("health", "--url", url).exit_code == 0
    process.send_signal(number)
    if number is signal.SIGKILL:  # nobody is left to remove the directory
        process.wait(timeout=20)
    else:
        assert process.wait(timeout=20) == 128 + number
        assert os.listdir(tmp_path / "temporary") == []
    deadline = time.monotonic() + 20
    while ccq("health", "--url", url).exit_code == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://[::1", "http://[::1: "),
        ("http://a..b", "cannot ask http://a..b"),
        ("http://" + "x" * 70, "cannot ask http://xxx"),
        ("http://127.0.0.1:99999", "99999"),
    ],
)
def test_addresses_that_are_none(url, words):
    for verb in (["health"], ["search", "id=1"]):
        result = ccq(*verb, "--url", url)
        assert (result.exit_code, result.output.count("\n")) == (1, 1), result.output
        assert words in result.output


@pytest.mark.parametrize("url", ["http:/host", "ftp://host", "http://", "http:///x", "/"])
def test_an_address_that_is_none_is_told_what_is_expected(url, monkeypatch):
    result = ccq("health", "--url", url)
    assert result.exit_code == 2
    said = f"expected the address of a service, as in http://127.0.0.1:8000, got {url!r} (--url, CCQ_URL)\n"
    assert result.output.endswith(said)
    monkeypatch.setenv("CCQ_URL", url)
    assert said in ccq("collections", "list").output


@pytest.mark.parametrize("start", ["", "//", " "])
def test_an_address_without_a_scheme_is_plain_http(url, start):
    assert ccq("health", "--url", start + url.removeprefix("http://")).output == "ready\n"


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9", "nonsense"])
def test_proxies_are_for_other_machines(url, monkeypatch, proxy):
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert ccq("health", "--url", url).exit_code == 0
    result = ccq("health", "--url", "http://service.invalid")
    assert (result.exit_code, result.output.count("\n")) == (1, 1), result.output


@pytest.fixture
def other_server():
    """A web server that is no CCQ service: it answers everything with what `answer` holds."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content = server.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>welcome</html>"),
        (200, b""),
        (200, b"[]"),
        (200, b"{}"),
        (404, b"<html>no</html>"),
        (500, b"[1]"),
        (400, b'{"title": "t", "detail": "d", "errors": [1, 2, 3]}'),
    ],
)
def test_another_web_server_at_the_address(other_server, files, answer):
    other_server.answer = answer
    url = f"http://127.0.0.1:{other_server.server_port}"
    for verb in (["health"], ["search", "id=1"], ["index", f"image={files / 'image.npy'}"]):
        result = ccq(*verb, "--url", url)
        assert result.exit_code == 1, result.output
        assert isinstance(result.exception, SystemExit)
        assert url in result.output


@pytest.mark.parametrize("name", ["a/b", "..", ".", "a?b", "a#b", "ü", "a b", "[red]", "\udcff"])
def test_a_collection_of_any_name_is_that_collection(indexed, name):
    result = ccq("search", "id=item-1", "--collection", name, "--url", indexed)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert not result.output.startswith("rank")
    assert any(words in result.output for words in (repr(name), "expected", "valid Unicode")), name


def serve_and_fail(*options, status=1, **variables):
    command = [sys.executable, "-m", "ccq_cli", "serve", *map(str, options)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CCQ_")}
    environment |= variables
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert result.returncode == status
    assert "Traceback" not in result.stderr
    return result.stderr


def test_serve_says_in_one_line_why_it_cannot_start(url, files, tmp_path):
    assert "give --data or set CCQ_DATA" in serve_and_fail(status=2)
    port = url.rsplit(":", 1)[1]
    assert "Address already in use" in serve_and_fail("--data", tmp_path, "--port", port)
    (tmp_path / "broken.ccq").write_bytes(b"no model at all")
    said = serve_and_fail("--data", tmp_path, "--port", 0, "--model", tmp_path / "broken.ccq")
    assert f"{tmp_path / 'broken.ccq'}: no CCQ model: it is text" in said
    words = [f"{name}={files / name}.npy" for name in ("image", "text")]
    said = refused("index", *words, "--data", tmp_path / "new", "--model", tmp_path / "broken.ccq")
    assert f"{tmp_path / 'broken.ccq'}: no CCQ model: it is text" in said


def test_serve_warns_of_variables_that_are_no_settings(tmp_path):
    said = serve_and_fail("--data", tmp_path, CCQ_SERACH_THREADS="4", CCQ_TLS_KEY=str(tmp_path / "none.pem"))
    assert "warning: CCQ_SERACH_THREADS is no setting; did you mean CCQ_SEARCH_THREADS?" in said


def test_variables_that_are_no_settings():
    fine = ["PATH", "CCQ_DATA", "ccq_port", "CCQ_MODEL", "CCQ_THREADS", "CCQ_SERVICE_HOST", "CCQ_PORT_8000_TCP_ADDR"]
    assert unknown_variables(fine) == []
    assert unknown_variables(["CCQ_XYZZY", "ccq_dta"]) == [
        "CCQ_XYZZY is no setting",
        "ccq_dta is no setting; did you mean CCQ_DATA?",
    ]


@pytest.fixture
def semi(tmp_path, files):
    """Arrays of 30 pairs of which row 4 has no text and row 7 nothing, ids and payloads."""
    arrays = {name: np.load(files / f"{name}.npy")[:30].copy() for name in ("image", "text")}
    arrays["text"][[4, 7]] = np.nan
    arrays["image"][7] = np.nan
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "ids.txt").write_text("".join(f"semi-{i}\r\n" for i in range(30)), newline="")
    return [f"{name}={tmp_path / name}.npy" for name in arrays], tmp_path


def items(url):
    with Client(url) as client:
        return {item["id"]: item for item in client.request("GET", "/items?limit=1000")["items"]}


def test_index_leaves_out_rows_without_features(url, semi):
    arrays, directory = semi
    result = ccq("index", *arrays, "--ids", directory / "ids.txt", "--batch", 10, "--url", url)
    assert result.exit_code == 0, result.output
    assert "indexed 29 items into collection default; 1 rows without features left out" in result.output
    stored = items(url)
    assert stored["semi-4"]["databases"] == ["image"]
    assert stored["semi-5"]["databases"] == ["image", "text", "pair"]
    assert "semi-7" not in stored


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("half NaN", "image.npy: image: row 25: number 3: NaN"),
        ("twice", "lines 3 and 29 are both 'x'"),
        ("payload", "p.jsonl: line 28: not valid JSON"),
        ("payload kind", "p.jsonl: line 28: expected a JSON object, got [1]"),
        ("encoding", "ids.txt: line 1: not UTF-8"),
        ("short", "expected 30 lines"),
    ],
)
def test_index_checks_everything_before_it_sends_anything(url, semi, fault, words):
    arrays, directory = semi
    ids, payloads = [f"new-{i}" for i in range(30)], ["{}"] * 30
    match fault:
        case "half NaN":
            image = np.load(directory / "image.npy")
            image[25, 3] = np.nan
            np.save(directory / "image.npy", image)
        case "twice":
            ids[2] = ids[28] = "x"
        case "payload":
            payloads[27] = "{"
        case "payload kind":
            payloads[27] = "[1]"
        case "short":
            ids.pop()
    (directory / "ids.txt").write_bytes(b"\xff\n" * 30 if fault == "encoding" else "\n".join(ids).encode())
    (directory / "p.jsonl").write_text("\n".join(payloads) + "\n")
    options = ["--ids", directory / "ids.txt", "--payloads", directory / "p.jsonl", "--batch", 10]
    result = ccq("index", *arrays, *options, "--url", url)
    assert result.exit_code == 1
    assert words in result.output
    assert not {"x", *ids} & set(items(url))


def test_index_says_how_far_it_got(url, semi):
    arrays, directory = semi
    payloads = ["{}"] * 30
    payloads[15] = '{"big": "' + "x" * 100_000 + '"}'  # only the service knows its limit
    (directory / "p.jsonl").write_text("\n".join(payloads))
    result = ccq("index", *arrays, "--payloads", directory / "p.jsonl", "--batch", 10, "--url", url)
    assert result.exit_code == 1
    assert "the first 9 items are stored, row 10 of 30 is next; some behind it may be stored too" in result.output


def test_index_says_where_nothing_was_stored(url, semi):
    arrays, directory = semi
    (directory / "p.jsonl").write_text("\n".join(['{"big": "' + "x" * 100_000 + '"}'] * 30))
    result = ccq("index", *arrays, "--payloads", directory / "p.jsonl", "--url", url)
    assert (result.exit_code, "stopped: nothing was stored\n" in result.output) == (1, True)


def test_search_takes_one_vector_and_databases_in_one_word(indexed, files, tmp_path):
    np.save(tmp_path / "one.npy", np.load(files / "text.npy")[3])
    result = ccq("search", f"text={tmp_path / 'one.npy'}", "--database", "image,text", "--json", "--url", indexed)
    assert result.exit_code == 0, result.output
    assert {hit["database"] for hit in json.loads(result.stdout)["results"]} <= {"image", "text"}


def test_index_sends_payloads_and_ids_as_they_are(url, semi):
    arrays, directory = semi
    payloads = [f'  {{"n": {i}, "text": "[red]:cat:[/] \\u00e9"}}' for i in range(30)]
    (directory / "ids.txt").write_text("".join(f"[bold]{i}[/x] :cat:\n" for i in range(30)), encoding="utf-8-sig")
    (directory / "p.jsonl").write_text("\n".join(payloads), encoding="utf-8-sig")
    options = ["--ids", directory / "ids.txt", "--payloads", directory / "p.jsonl", "--url", url]
    result = ccq("index", *arrays, *options)
    assert result.exit_code == 0, result.output
    stored = items(url)
    assert stored["[bold]0[/x] :cat:"]["payload"] == {"n": 0, "text": "[red]:cat:[/] é"}
    found = ccq("search", "id=[bold]0[/x] :cat:", "--limit", 300, "--url", url)
    assert found.exit_code == 0, found.output
    shown = re.sub(r"[^!-~é]", "", found.output)  # cells are folded
    assert "[bold]1[/x]" in shown
    assert "[red]" in shown
    payloads[3] = '{"n": 123456789012345678901234567890}'
    (directory / "p.jsonl").write_text("\n".join(payloads))
    result = ccq("index", *arrays, *options)
    assert result.exit_code == 1  # the service's own refusal: the number reaches it as it is
    assert "integer" in result.output
    condition = '{"must": [{"key": "n", "match": {"value": 123456789012345678901234567890}}]}'
    result = ccq("search", "id=[bold]0[/x] :cat:", "--filter", condition, "--url", url)
    assert result.exit_code == 1, result.output
    assert "integer" in result.output


@pytest.fixture
def images_only(files, url):
    """A collection whose items have an image and no text."""
    with Client(url) as client:
        client.collections.create("images", "m", keep="float16")
    result = ccq("index", f"image={files / 'image.npy'}", "--collection", "images", "--url", url)
    assert result.exit_code == 0, result.output
    yield ["--collection", "images", "--url", url]
    with Client(url) as client:
        client.collections.delete("images")


def test_an_empty_search_says_why(images_only, files):
    there = "image has 300: search with --database image\n"
    for database, name in (([], "pair"), (["--database", "text"], "text"), (["--database", "text,pair"], "text, pair")):
        result = ccq("search", "id=7", *database, *images_only)
        assert result.exit_code == 0
        assert result.stderr == f"note: no item is in database {name}; {there}"
    result = ccq("search", "id=7", "--json", *images_only)
    assert (json.loads(result.stdout)["results"], there in result.stderr) == ([], True)
    grouped = ccq("search", "id=7", "--group-by", "x", *images_only)
    assert there in grouped.stderr
    image = ["search", "id=7", "--database", "image", *images_only]
    assert ccq(*image).stderr == ""
    condition = '{"must": [{"key": "x", "match": {"value": 1}}]}'
    for options, said in (
        (["--filter", condition], "--filter"),
        (["--score-threshold", 2], "--score-threshold"),
        (["--offset", 400, "--filter", condition], "--filter, --offset"),
        (["--group-by", "x"], "--group-by"),
    ):
        assert ccq(*image, *options).stderr == f"note: of 300 items in image none is left by {said}\n"
    with Client(images_only[-1]) as client:
        client.collection("images").set_payload(3, {"colour": "red"})
    misspelled = ccq(*image, "--filter", condition.replace("x", "color", 1))
    told, near = misspelled.stderr.splitlines()
    assert told == "note: of 300 items in image none is left by --filter"
    assert near.startswith(
        "note: no results: of the first items of collection 'images' none has 'color' in its payload"
    )
    assert near.endswith("; did you mean 'colour'?")


def test_a_search_of_an_empty_collection_says_so(url, files):
    with Client(url) as client:
        client.collections.create("empty", "m")
    result = ccq("search", f"image={files / 'image.npy'}", "--row", 0, "--collection", "empty", "--url", url)
    assert result.stderr == "note: collection empty has no items yet: `ccq index` stores some\n"
    with Client(url) as client:
        client.collections.delete("empty")


def test_a_file_of_many_rows_is_said_to_be_searched_by_one(indexed, files, tmp_path):
    many = ["search", f"image={files / 'image.npy'}", "--database", "image", "--url", indexed]
    assert "image has 300 rows: searching with the first one; --row N takes another" in ccq(*many).stderr
    assert ccq(*many, "--row", 0).stderr == ""
    np.save(tmp_path / "one.npy", np.load(files / "image.npy")[0])
    assert ccq("search", f"image={tmp_path / 'one.npy'}", "--database", "image", "--url", indexed).stderr == ""


def test_search_ranks_anew_and_by_another_metric(images_only, indexed):
    plain = replies(images_only[-1], "id=7", "--database", "image", "--limit", 5, *images_only[:2])
    anew = replies(images_only[-1], "id=7", "--database", "image", "--limit", 5, "--rescore", *images_only[:2])
    assert [hit["distance"] for hit in anew] != [hit["distance"] for hit in plain]
    over = ["id=7", "--database", "image", "--limit", 5, "--rescore", "--oversampling", 60, *images_only[:2]]
    assert replies(images_only[-1], *over)[0]["distance"] <= anew[0]["distance"]
    by = [replies(indexed, "id=item-3", "--metric", metric)[9]["score"] for metric in ("cosine", "euclidean")]
    assert by[0] > 0 > by[1]
    assert "--oversampling is for --rescore" in ccq("search", "id=7", "--oversampling", 2, *images_only).output
    assert "got both" in ccq("search", "id=7", "--rescore", "--group-by", "x", *images_only).output
    assert "keeps no features" in ccq("search", "id=item-3", "--rescore", "--url", indexed).output
