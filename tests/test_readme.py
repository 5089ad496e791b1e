"""Every code block of the README is run, or has its reason here."""

import re
import runpy
from pathlib import Path

import pytest

from ccq_core import CCQ
from ccq_core.datasets import load_emoji
from tests.service.harness import ServerProcess

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, flags=re.DOTALL)

# Blocks that are not run here, by their first words.
ELSEWHERE = {
    "make demo": "what continuous integration itself runs",
    "ccq index": "the same verbs on the same kind of files: tests/cli/test_online_verbs.py",
    "ccq train": "the same verbs on the same kind of files: tests/cli/test_online_verbs.py",
    "curl -s": "the same requests over HTTP: tests/cli/test_online_verbs.py",
}


def test_there_is_nothing_unknown():
    for language, code in BLOCKS:
        known = language == "python" or any(code.startswith(start) for start in ELSEWHERE)
        assert known, f"a block that no test runs: {code[:40]!r}"


@pytest.fixture
def server(tmp_path):
    """`ccq serve` with a model of emoji."""
    CCQ(bits=64, iterations=3, seed=0).fit(load_emoji().all.features).save(tmp_path / "emoji.ccq")
    server = ServerProcess(tmp_path / "store", tmp_path / "emoji.ccq")
    server.wait_until_ready()
    yield server
    server.kill()


@pytest.mark.parametrize("code", [code for language, code in BLOCKS if language == "python"])
def test_python_blocks_run(code, tmp_path, monkeypatch, capsys, request):
    if "ccq_client" in code:
        monkeypatch.setenv("CCQ_URL", request.getfixturevalue("server").url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.py").write_text(code, encoding="utf-8")
    names = runpy.run_path("block.py")
    assert set("🐱😾😽😼😸😺😻😹😿🙀") & set(names["hits"].ids[0])
    assert capsys.readouterr().out


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", TEXT):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert target.startswith("http") or (ROOT / target).exists(), target
