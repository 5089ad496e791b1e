"""`ccq search` by words and by image files, which the service encodes."""

import json

import pytest
from click.testing import CliRunner

from ccq_cli.main import main
from ccq_cli.search import _query
from ccq_core import CCQ
from ccq_core.datasets import load_emoji
from tests.service.harness import ServerProcess


def ccq(*arguments):
    return CliRunner().invoke(main, ["search", *map(str, arguments)])


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A service with 300 emoji and the encoder of their words."""
    folder = tmp_path_factory.mktemp("emoji")
    emoji = load_emoji().all
    features = {name: array[:300] for name, array in emoji.features.items()}
    CCQ(bits=32, iterations=2, seed=0).fit(features).save(folder / "emoji.ccq")
    server = ServerProcess(folder / "data", folder / "emoji.ccq")
    server.wait_until_ready()
    put = {"model": "emoji", "encoders": {"text": "emoji"}}
    assert server.client.put("/collections/default", json=put).status_code == 200
    items = [{"id": name, "features": {"text": name}} for name in emoji.names[:300]]
    assert server.client.post("/index", json={"items": items}).status_code == 200
    yield server.url
    assert server.stop() == 0


def test_words_find_what_was_indexed_by_them(url):
    name = load_emoji().all.names[7]
    result = ccq("--words", f"text={name}", "--database", "text", "--limit", 3, "--json", "--url", url)
    assert result.exit_code == 0, result.output
    assert name in [hit["id"] for hit in json.loads(result.stdout)["results"]]


def test_words_that_are_unknown_are_told(url):
    result = ccq("--words", "text=girafe", "--url", url)
    assert result.exit_code == 1
    assert "no known word in 'girafe'; did you mean 'giraffe'" in result.output


def test_images_and_words_are_one_query(tmp_path):
    file = tmp_path / "cat.PNG"
    file.write_bytes(b"\x89PNG")
    query = _query((f"image={file}",), ("text=a=b",), None, (), ())
    assert query == {"features": {"image": b"\x89PNG", "text": "a=b"}}
    assert _query((), ("text=a",), None, (), ("p1",)) == {"like": [{"text": "a"}], "unlike": ["p1"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected a QUERY, or --words"),
        (["--words", "cat"], "expected NAME=..., got 'cat'"),
        (["--words", "text=a", "--words", "text=b"], "expected each modality once, got text, text"),
        (["id=p1", "--words", "text=a"], "not both in one query"),
        (["id=p1", "text=a.npy"], "expected stored items (id=ITEM), or arrays, images and --words: not both"),
        (["cat.png"], "'cat.png': expected id=cat.png for a stored item, or NAME=FILE.png"),
        (["photo-17"], "'photo-17': expected id=photo-17 for a stored item, or NAME=FILE.npy"),
    ],
)
def test_what_makes_no_query_is_told(arguments, words):
    result = ccq(*arguments, "--url", "http://127.0.0.1:9")
    assert result.exit_code in (1, 2)
    assert words in result.output
