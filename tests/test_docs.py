"""docs/service.md names every route, error code and setting; the Python of every document runs."""

import json
import re
import runpy
from pathlib import Path

import pytest

from ccq_client import Client
from ccq_client.errors import CODES
from service.problems import KINDS, NO_METHOD, NO_ROUTE
from service.settings import Settings
from tests.service.harness import ServerProcess

ROOT = Path(__file__).parents[1]
SERVICE = (ROOT / "docs/service.md").read_text(encoding="utf-8")
ONE_PROGRAM = {"client.md"}  # its blocks run in order, and share names


def programs(path):
    """The Python of a document."""
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return ["".join(blocks)] if path.name in ONE_PROGRAM else blocks


PYTHON = [(path.name, code) for path in sorted((ROOT / "docs").glob("*.md")) for code in programs(path)]
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


@pytest.fixture
def server(tmp_path):
    """`ccq serve --data ./store`."""
    server = ServerProcess(tmp_path / "store")
    yield server
    server.kill()


@pytest.mark.parametrize(("name", "code"), PYTHON)
def test_python_blocks_run(name, code, tmp_path, monkeypatch, capsys, request):
    if "ccq_client" in code:
        monkeypatch.setenv("CCQ_URL", request.getfixturevalue("server").url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.py").write_text(code, encoding="utf-8")
    runpy.run_path("block.py")
    assert capsys.readouterr().out, name


def test_every_verb_of_the_client_is_documented():
    text = (ROOT / "docs/client.md").read_text(encoding="utf-8")
    for name in {name for name in dir(Client) if not name.startswith("_")}:
        assert re.search(rf"\b{name}\(|`{name}`", text), name
    for error in CODES.values():
        assert f"`{error.__name__}`" in text, error
