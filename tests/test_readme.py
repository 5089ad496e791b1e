"""The README's code blocks run in order, as a reader would run them, or say why not."""

import re
import shutil

import pytest

from tests.documents import ROOT, blocks, run_python, shell

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_blocks_run(tmp_path, monkeypatch, capsys):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    monkeypatch.chdir(tmp_path)
    found = []
    with shell(tmp_path) as terminal:
        monkeypatch.setenv("CCQ_URL", terminal.url)
        for block in blocks(TEXT):
            assert block.note != "not run" or len(block.why) > 10, block
            if block.note == "not run":
                continue
            if block.language == "sh":
                terminal.run(block.code)
                continue
            assert block.language == "python", block
            names = {}
            run_python(block.code, "README.md", names)
            assert capsys.readouterr().out, block
            found += [names["hits"].ids] if "hits" in names else []
    library, client = found
    assert set("🐱😾😽😼😸😺😻😹😿🙀") & set(library[0])
    assert client[0] == "p7"


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", TEXT):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
