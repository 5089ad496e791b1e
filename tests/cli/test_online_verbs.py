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
    assert "300 items in collection default" in result.output
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
