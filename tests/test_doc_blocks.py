"""The fenced blocks of every document run, or say why not."""

import configparser
import importlib.util
import json
import shutil
import tomllib
import warnings

import pytest
import yaml

from tests.documents import DOCS, ROOT, Block, blocks, pages, run_python, shell
from tests.service.harness import ServerProcess

ONE_PROGRAM = {"client.md"}  # its blocks share names
RUN = {"python", "sh"}
READ = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "ini": lambda text: configparser.ConfigParser(strict=False, interpolation=None).read_string(text),
}
SHOWN = {"text": "for people", "ts": "tests/client/test_typescript.py compiles the like"}
BLOCKS = {str(page): blocks((DOCS / page).read_text(encoding="utf-8")) for page in pages()}


@pytest.mark.parametrize("page", [page for page, found in BLOCKS.items() if found])
def test_blocks_are_of_known_kinds_and_data_can_be_read(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert 2 * len(BLOCKS[page]) == sum(line.lstrip().startswith("```") for line in text.splitlines())
    for block in BLOCKS[page]:
        assert block.language in RUN | set(READ) | set(SHOWN), block
        assert block.note != "not run" or len(block.why) > 10, f"no reason why this is not run: {block.code[:60]!r}"
        if block.language in READ:
            READ[block.language](block.code)


def to_run(page):
    return [block for block in BLOCKS[page] if block.language in RUN and block.note != "not run"]


@pytest.fixture
def server(tmp_path):
    """`ccq serve --data ./store`, for pages that do not start it themselves."""
    server = ServerProcess(tmp_path / "store")
    yield server
    server.kill()


@pytest.mark.parametrize("page", [page for page in BLOCKS if to_run(page)])
def test_blocks_run(page, tmp_path, monkeypatch, capsys, request):
    """In order and in one directory, as a reader would."""
    chosen = to_run(page)
    if any(block.code.startswith("curl") for block in chosen) and shutil.which("curl") is None:
        pytest.skip("there is no curl")
    serves = any("ccq serve" in block.code for block in chosen)
    names = {}
    monkeypatch.chdir(tmp_path)
    with shell(tmp_path) as terminal:
        if serves:
            monkeypatch.setenv("CCQ_URL", terminal.url)
        elif any("ccq_client" in block.code for block in chosen):
            monkeypatch.setenv("CCQ_URL", request.getfixturevalue("server").url)
        for block in chosen:
            if block.note == "runs with" and importlib.util.find_spec(block.why) is None:
                continue
            if block.language == "sh":
                terminal.run(block.code)
                continue
            names = names if page in ONE_PROGRAM else {}
            with warnings.catch_warnings():
                if block.note == "runs with":
                    warnings.simplefilter("default")  # the warnings of others are theirs
                run_python(block.code, page, names)
            assert capsys.readouterr().out, f"it prints nothing: {block.code[:60]!r}"


def test_a_block_that_fails_is_found(tmp_path):
    with shell(tmp_path) as terminal:
        terminal.run("true")
        with pytest.raises(AssertionError, match="no-such-file"):
            terminal.run("cat no-such-file\ntrue")
    with pytest.raises(ZeroDivisionError):
        run_python("1 / 0", "page", {})


def test_comments_above_blocks_are_understood():
    text = "<!-- not run: it is only an example -->\n```sh\nfalse\n```\n\n  ```python\n  print(1)\n  ```\n"
    assert blocks(text) == [
        Block("sh", "false\n", "not run", "it is only an example"),
        Block("python", "print(1)\n"),
    ]


def test_the_settings_of_the_unit_exist():
    """What docs/howto/production.md tells systemd and ccq.env to set."""
    import re

    from service.settings import Settings

    text = (DOCS / "howto/production.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(CCQ_[A-Z_]+)=", text))
    assert {"CCQ_DATA", "CCQ_MAX_WAITING"} <= named
    assert named <= {f"CCQ_{name.upper()}" for name in Settings.model_fields}
    assert (ROOT / "docker-compose.yml").exists()
