"""`--json` of every verb: one line of JSON on standard output, or a reason why there is none."""

import json
from collections.abc import Iterator

import apsw
import click
import httpx
import numpy as np

from ccq_cli.main import VERBS, main
from ccq_core import CCQ
from service.store.reading import DATABASE_NAME
from tests.cli.bulk import ok, refused

_SAID_BY_STATUS = "says no more than that it is done, which the exit status says"
WITHOUT = {
    "demo": "shows people what there is",
    "serve": "runs on; CCQ_LOG_FORMAT=json is for its log",
    "keys delete": _SAID_BY_STATUS,
    "collections delete": _SAID_BY_STATUS,
    "models delete": _SAID_BY_STATUS,
    "models download": _SAID_BY_STATUS,
    "alias delete": _SAID_BY_STATUS,
}
"""Verbs without `--json`, and why."""


def verbs() -> Iterator[tuple[str, click.Command]]:
    """All verbs, and those that belong to one."""
    context = click.Context(main)
    for name in VERBS:
        command = main.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", command.commands[sub]) for sub in command.commands)
        else:
            yield name, command


def test_every_verb_has_json_or_a_reason():
    having = {name for name, command in verbs() if any("--json" in option.opts for option in command.params)}
    assert having.isdisjoint(WITHOUT)
    assert having | set(WITHOUT) == {name for name, _ in verbs()}


def said(*arguments):
    """The one line of JSON that a command prints."""
    output = ok(*arguments, "--json")
    assert output.count("\n") == 1, output
    return json.loads(output)


def test_of_a_data_directory(directory, tmp_path, files):
    words = [f"{name}={files / name}.npy" for name in ("image", "text")]
    (tmp_path / "ids.txt").write_text("".join(f"{row}\n" for row in range(300)))
    stored = said("index", *words, "--ids", tmp_path / "ids.txt", "--data", directory)
    assert (stored["collection"], stored["indexed"], stored["left_out"]) == ("default", 300, 0)
    out = said("export", directory, tmp_path / "out")
    assert (out["collection"], out["exported"], out["output"]) == ("default", 358, str(tmp_path / "out"))
    checked = said("check", "--data", directory)
    assert checked["ok"]
    assert [part["name"] for part in checked["parts"]][:2] == ["database", "model 'm'"]
    assert checked["parts"][0]["faults"] == []


def test_of_a_damaged_directory(directory):
    connection = apsw.Connection(str(directory / DATABASE_NAME))
    connection.execute("UPDATE codes_1 SET data = zeroblob(length(data))")
    connection.close()
    report = json.loads(refused("check", "--data", directory, "--json"))
    assert not report["ok"]
    assert any(part["faults"] for part in report["parts"])


def test_of_files(files, tmp_path):
    words = [f"{name}={files / name}.npy" for name in ("image", "text")]
    codes = said("encode", files / "m.ccq", *words, "-o", tmp_path / "c.npy")
    assert codes == {"output": str(tmp_path / "c.npy"), "items": 300, "bytes_per_item": 3}
    assert np.load(tmp_path / "c.npy").shape == (300, 3)
    output = ok("train", *words, "-o", tmp_path / "m.ccq", "--bits", 16, "--iterations", 2, "--json")
    trained = json.loads(output.splitlines()[-1])  # a note stands before it
    assert (trained["output"], trained["objects"], trained["bits"]) == (str(tmp_path / "m.ccq"), 300, 16)
    assert trained["loss"] == CCQ.load(tmp_path / "m.ccq").losses_[-1]


def test_of_keys(tmp_path):
    made = said("keys", "create", "web", "--scope", "search", "--collection", "c", "--data", tmp_path)
    assert made.pop("key").startswith("ccq_")
    assert (made["name"], made["scopes"], made["collections"]) == ("web", ["search"], ["c"])
    assert said("keys", "list", "--data", tmp_path) == {"keys": [made]}


def test_of_a_service(url, tmp_path):
    assert said("health", "--url", url) == {"ready": True}
    assert '{"ready": false}\n' in refused("health", "--url", "http://127.0.0.1:1", "--json")
    made = said("snapshot", "--url", url, "-o", tmp_path / "s.zip")
    assert (made.pop("output"), made.pop("moved")) == (str(tmp_path / "s.zip"), False)
    assert made in httpx.get(f"{url}/snapshots").json()["snapshots"]
    restored = said("restore", tmp_path / "s.zip", "--data", tmp_path / "d")
    assert (restored["data"], restored["collections"]) == (str(tmp_path / "d"), made["collections"])
    assert said("snapshot", "--url", url)["output"] is None
