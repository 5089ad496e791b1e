"""`ccq keys`, and keys of the verbs that talk to a service."""

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ccq_cli.demo import wait_until_ready
from ccq_cli.main import main
from service import keys


def ccq(*arguments, **environment):
    return CliRunner().invoke(main, [str(a) for a in arguments], env=environment)


def test_a_key_is_shown_once_and_listed_without_it(tmp_path):
    data = tmp_path / "new" / "data"
    made = ccq("keys", "create", "web", "--scope", "search", "--scope", "write", "--collection", "c", "--data", data)
    assert made.exit_code == 0, made.output
    assert re.fullmatch(r"ccq_[\w-]{43}\n", made.stdout)
    assert "shown this once" in made.stderr
    (key,) = keys.read(data / "keys.json").values()
    assert key.hash == keys.hashed(made.stdout.strip())
    assert ccq("keys", "create", "all", "--scope", "admin", CCQ_DATA=str(data)).exit_code == 0
    listed = ccq("keys", "list", "--data", data)
    assert made.stdout.strip() not in listed.output
    rows = [re.findall(r"[\w:-]+", line) for line in listed.output.splitlines()]
    assert ["web", "search", "write", "c", key.created] in rows
    assert [row[:3] for row in rows if row[:1] == ["all"]] == [["all", "admin", "all"]]


def test_a_key_is_deleted_by_name(tmp_path):
    for name in ("web", "first"):
        ccq("keys", "create", name, "--scope", "search", "--data", tmp_path)
    assert ccq("keys", "delete", "first", "--data", tmp_path).output == "deleted key 'first'\n"
    deleted = ccq("keys", "delete", "web", "--data", tmp_path)
    assert (deleted.exit_code, deleted.stdout) == (0, "deleted key 'web'\n")
    assert "note: no key is left. A service that runs lets nobody in; one that is started now" in deleted.stderr
    assert keys.read(tmp_path / "keys.json") == {}
    again = ccq("keys", "delete", "web", "--data", tmp_path)
    assert (again.exit_code, again.output) == (1, "Error: there is no key 'web'\n")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["create", "web", "--scope", "search"], 1, "there is a key 'web' already"),
        (["create", "a b", "--scope", "search"], 2, "expected names of keys and collections"),
        (["create", "x", "--scope", "search", "--collection", "a/b"], 2, "expected names of keys and collections"),
        (["create", "x", "--scope", "all"], 2, "'all' is not one of"),
        (["create", "x"], 2, "Missing option '--scope'"),
    ],
)
def test_keys_that_cannot_be(tmp_path, arguments, status, words):
    ccq("keys", "create", "web", "--scope", "search", "--data", tmp_path)
    before = (tmp_path / "keys.json").read_bytes()
    result = ccq("keys", *arguments, "--data", tmp_path)
    assert result.exit_code == status, result.output
    assert words in result.output
    assert (tmp_path / "keys.json").read_bytes() == before


def test_a_damaged_file_is_told_in_one_line(tmp_path):
    (tmp_path / "keys.json").write_text("{")
    for arguments in (["list"], ["delete", "x"], ["create", "x", "--scope", "admin"]):
        result = ccq("keys", *arguments, "--data", tmp_path)
        assert (result.exit_code, result.output.count("\n")) == (1, 1), result.output
        assert "is damaged" in result.output
    assert (tmp_path / "keys.json").read_text() == "{"


@pytest.fixture
def guarded(files, tmp_path):
    """A service that asks for keys; its address and a key that may search and write."""
    data = tmp_path / "data"
    secret = ccq("keys", "create", "k", "--scope", "search", "--scope", "write", "--data", data).stdout.strip()
    command = [sys.executable, "-m", "ccq_cli", "serve", "--data", str(data), "--port", "0"]
    process = subprocess.Popen([*command, "--model", str(files / "m.ccq")], stdout=subprocess.PIPE, text=True)
    try:
        yield wait_until_ready(process), secret
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0
        process.stdout.close()


def test_verbs_take_a_key(guarded, files):
    url, secret = guarded
    arrays = [f"image={files / 'image.npy'}", f"text={files / 'text.npy'}"]
    refused = ccq("index", *arrays, "--url", url)
    assert refused.exit_code == 1
    assert "expected an API key, got none; give the key by --api-key, or in the variable CCQ_API_KEY" in refused.output
    unknown = ccq("search", "id=1", "--url", url, "--api-key", "ccq_other")
    assert "got one that it does not know; give the key by --api-key" in unknown.output
    forbidden = ccq("jobs", "list", "--url", url, "--api-key", secret)
    assert "expected an API key with scope admin, got 'k' with search, write; give the key by" in forbidden.output
    assert ccq("index", *arrays, "--url", url, "--api-key", secret).exit_code == 0
    assert ccq("search", "id=1", "--url", url, CCQ_API_KEY=secret).exit_code == 0
    assert ccq("health", "--url", url, CCQ_API_KEY=secret).exit_code == 0
    assert ccq("health", "--url", url).exit_code == 0
    wrong = ccq("search", "id=1", "--url", url, "--api-key", "ccq_é\u2028")
    assert (wrong.exit_code, wrong.output) == (1, "Error: the API key has characters that no key has\n")
