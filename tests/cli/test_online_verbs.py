"""Verbs that talk to a running service: index, search, health, demo; and curl as the README shows it."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from ccq_cli.api import Api
from ccq_cli.main import main
from ccq_core import CCQ, CodeIndex


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


def test_problems_of_the_service_are_told_in_words(indexed, files):
    cases = [
        (["search", f"image={files / 'text.npy'}"], "expected 12 numbers, got 8"),
        (["search", f"text={files / 'text.npy'}", "--row", 300], "text has 300 rows"),
        (["search", "id=nobody"], "nobody"),
        (["search", "id=item-1", "--collection", "nowhere"], "nowhere"),
        (["index", f"image={files / 'text.npy'}"], "expected 12 numbers, got 8"),
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
    unknown = ccq("demo", "--bits", 16, "--words", "xyzzy")
    assert unknown.exit_code == 1
    assert "xyzzy" in unknown.output


def serve_and_fail(*options):
    command = [sys.executable, "-m", "ccq_cli", "serve", *map(str, options)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CCQ_")}
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    return result.stderr


def test_serve_says_in_one_line_why_it_cannot_start(url, files, tmp_path):
    assert "give --data or set CCQ_DATA" in serve_and_fail()
    port = url.rsplit(":", 1)[1]
    assert "Address already in use" in serve_and_fail("--data", tmp_path, "--port", port)
    (tmp_path / "broken.ccq").write_bytes(b"no model at all")
    assert "safetensors" in serve_and_fail("--data", tmp_path, "--port", 0, "--model", tmp_path / "broken.ccq")


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
    with Api(url) as api:
        return {item["id"]: item for item in api.call("GET", "/items?limit=1000")["items"]}


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
        ("half NaN", "features['image'][25]: number 3: NaN"),
        ("twice", "lines 3 and 29 are both 'x'"),
        ("payload", "p.jsonl: line 28: not valid JSON"),
        ("payload kind", "p.jsonl: line 28: expected a JSON object, got [1]"),
        ("encoding", "ids.txt: not UTF-8"),
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
    assert "the first 10 of 29 items are indexed, row 11 is next" in result.output


def test_search_takes_one_vector_and_databases_in_one_word(indexed, files, tmp_path):
    np.save(tmp_path / "one.npy", np.load(files / "text.npy")[3])
    result = ccq("search", f"text={tmp_path / 'one.npy'}", "--database", "image,text", "--json", "--url", indexed)
    assert result.exit_code == 0, result.output
    assert {hit["database"] for hit in json.loads(result.stdout)["results"]} <= {"image", "text"}
