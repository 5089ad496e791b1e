"""docs/service.md names every route, error code and setting, docs/client.md every verb and error."""

import json
import re

import pytest

from ccq_client import Client
from ccq_client.errors import CODES
from service.problems import KINDS, NO_METHOD, NO_ROUTE
from service.settings import Settings
from tests.documents import ROOT, pages

SERVICE = (ROOT / "docs/service.md").read_text(encoding="utf-8")
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


def test_every_verb_of_the_client_is_documented():
    text = (ROOT / "docs/client.md").read_text(encoding="utf-8")
    for name in {name for name in dir(Client) if not name.startswith("_")}:
        assert re.search(rf"\b{name}\(|`{name}`", text), name
    for error in CODES.values():
        assert f"`{error.__name__}`" in text, error


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{page}" for page in pages())])
def test_links_lead_somewhere_in_the_repository_too(page):
    for target in re.findall(r"\]\(([^)#\s]+)", re.sub(r"<!--.*?-->", "", (ROOT / page).read_text(encoding="utf-8"))):
        assert ":" in target or (ROOT / page).parent.joinpath(target).exists(), target


def test_troubleshooting_quotes_what_is_said():
    """What stands in the first column is a code, something to type, or a part of a message."""
    text = (ROOT / "docs/operations/troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"`([^`]+)`", "\n".join(re.findall(r"^\| ([^|]+) \|", text, flags=re.MULTILINE)))
    sources = [
        ROOT / "pyproject.toml",
        *(p for d in ("service", "ccq_cli", "ccq_client", "ccq_core") for p in (ROOT / d).rglob("*.py")),
    ]
    said = re.sub(r'"\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in sources))
    codes = {kind.code for kind in KINDS.values()} | {NO_ROUTE.code, NO_METHOD.code}
    assert len(quoted) > 40
    for part in quoted:
        assert part in codes or part.startswith(("ccq ", "/")) or part in said, part
    for code in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text):
        assert code in codes or code in said, code


def test_every_metric_is_documented_and_there_is_no_other():
    text = (ROOT / "docs/operations/monitoring.md").read_text(encoding="utf-8")
    sources = "".join((ROOT / "service" / name).read_text(encoding="utf-8") for name in ("metrics.py", "scrape.py"))
    known = {name + "_total" * (kind == "Counter") for kind, name in re.findall(r'(\w+)\(\s*"(ccq_\w+)"', sources)}
    assert len(known) > 12
    named = set(re.findall(r"`(ccq_\w+)", text))
    assert named == known
    assert {name.removesuffix("_bucket") for name in re.findall(r"\b(ccq_\w+)", text)} == known
