"""What verbs say of files, directories and services that are not what they should be; nothing is left behind."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from tests.cli.bulk import ok, refused


@pytest.fixture
def elsewhere():
    """The address of a web server that is no service."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_another_web_server_is_no_service(elsewhere, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 12)))
    for verb in (
        ["health"],
        ["search", "id=1"],
        ["index", f"image={tmp_path / 'a.npy'}"],
        ["collections", "list"],
        ["jobs", "wait", "x"],
        ["snapshot"],
    ):
        said = refused(*verb, "--url", elsewhere)
        assert "is not that of a CCQ service; say by --url or CCQ_URL where the service is" in said, verb


def test_a_service_without_tls_is_told(url):
    said = refused("health", "--url", url.replace("http", "https"))
    assert "what is there may speak http:// instead of https://" in said


def test_no_verb_makes_a_data_directory_of_another(files, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    image = f"image={files / 'image.npy'}"
    for verb, words in (
        (["export", tmp_path / "mine", tmp_path / "out"], "expected a data directory, or the URL of a service (http"),
        (["index", image, "--data", tmp_path / "mine"], "no database in it; to make it, give --model"),
        (["check", "--data", tmp_path / "mine"], "no database"),
        (["keys", "list", "--data", tmp_path / "none"], "does not exist"),
        (["keys", "delete", "x", "--data", tmp_path / "none"], "does not exist"),
    ):
        assert words in refused(*verb), verb
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    assert not (tmp_path / "none").exists()


def test_a_directory_is_told_in_words_of_the_command_line(directory, tmp_path):
    said = refused("export", directory, tmp_path / "out", "--collection", "other")
    assert said == "Error: no collection 'other' (there is 'default')\n"
    (tmp_path / "out").mkdir()
    said = refused("export", directory, tmp_path / "out")
    assert said == f"Error: {tmp_path / 'out'}: File exists: delete it, or choose another name\n"


def test_files_that_cannot_be_written_are_told_before_anything_is_made(url, tmp_path):
    for verb in (["models", "download", "m"], ["snapshot"]):
        said = refused(*verb, "-o", tmp_path / "none" / "x", "--url", url)
        assert said == f"Error: {tmp_path / 'none' / 'x'}: No such file or directory\n"


def test_rows_are_those_of_the_file(url, tmp_path):
    array = np.ones((4, 12))
    array[2, 1] = np.inf
    np.save(tmp_path / "a.npy", array)
    said = refused("search", f"image={tmp_path / 'a.npy'}", "--row", 2, "--url", url)
    assert f"{tmp_path / 'a.npy'}: image: row 2: number 1: inf is infinite" in said
    assert "--row is for arrays" in refused("search", "id=1", "--row", 2, "--url", url)
    said = refused("train", f"image={tmp_path / 'a.npy'}", "--batch-rows", 2, "-o", tmp_path / "m.ccq")
    assert f"{tmp_path / 'a.npy'}: image: row 2: number 1: inf is infinite" in said


def test_objects_of_python_are_not_advised_to_be_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", image=np.array([{}], dtype=object))
    for source in (f"image={tmp_path / 'a.npy'}", tmp_path / "a.npz"):
        said = refused("train", source, "-o", tmp_path / "m.ccq")
        assert "allow_pickle" not in said
        assert "holds Python objects" in said


def test_an_empty_list_of_keys_is_one(tmp_path):
    assert json.loads(ok("keys", "list", "--data", tmp_path, "--json")) == {"keys": []}
