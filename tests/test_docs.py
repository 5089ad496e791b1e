"""docs/service.md names every route, error code and setting; the Python of every document runs."""

import json
import re
import runpy
from pathlib import Path

import pytest

from service.problems import KINDS, NO_METHOD, NO_ROUTE
from service.settings import Settings

ROOT = Path(__file__).parents[1]
SERVICE = (ROOT / "docs/service.md").read_text(encoding="utf-8")
PYTHON = [
    (path.name, code)
    for path in sorted((ROOT / "docs").glob("*.md"))
    for code in re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
]
DOCUMENT = json.loads((ROOT / "openapi/openapi.json").read_text(encoding="utf-8"))


def test_every_route_is_documented():
    for path, methods in DOCUMENT["paths"].items():
        assert f"{path}`" in SERVICE, path
        for method in methods:
            if not path.startswith("/collections/{collection}/"):
                assert f"`{method.upper()} {path}`" in SERVICE, (method, path)


def test_documented_routes_exist():
    for method, path in re.findall(r"`(GET|PUT|POST|DELETE) (/[^`?]*)`", SERVICE):
        assert method.lower() in DOCUMENT["paths"][path], (method, path)


def test_every_error_code_is_documented_with_its_status():
    for kind in {*KINDS.values(), NO_ROUTE, NO_METHOD}:
        assert f"| `{kind.code}` | {kind.status} |" in SERVICE, kind


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_is_documented(name):
    field = Settings.model_fields[name]
    assert f"| `CCQ_{name.upper()}` | " in SERVICE
    assert field.description in SERVICE


def test_json_examples_are_json():
    for block in re.findall(r"```json\n(.*?)```", SERVICE, flags=re.DOTALL):
        json.loads(block)


@pytest.mark.parametrize(("name", "code"), PYTHON)
def test_python_blocks_run(name, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.py").write_text(code, encoding="utf-8")
    runpy.run_path("block.py")
    assert capsys.readouterr().out, name
