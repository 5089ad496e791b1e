"""A TypeScript client, generated from the committed OpenAPI document, compiles and searches a real server."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ccq_client import Client
from tests.service.harness import MODEL, PAIRS, ServerProcess

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests/typescript"
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH")


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The generated and compiled program's directory."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node or npm is not installed")
    directory = tmp_path_factory.mktemp("typescript") / "project"
    shutil.copytree(SOURCE, directory, ignore=shutil.ignore_patterns("node_modules", "made"))
    shutil.copy(ROOT / "openapi/openapi.json", directory)
    installed = run("npm", "ci", "--no-update-notifier", cwd=directory)
    if installed.returncode and any(word in installed.stderr for word in OFFLINE):
        pytest.skip("npm's packages cannot be fetched from here")
    assert installed.returncode == 0, installed.stderr
    return directory


def test_a_generated_client_compiles_and_searches(project, tmp_path):
    for script in ("generate", "compile"):
        result = run("npm", "run", "--silent", script, cwd=project)
        assert result.returncode == 0, result.stdout + result.stderr
    MODEL.save(tmp_path / "tiny.ccq")
    server = ServerProcess(tmp_path / "data", tmp_path / "tiny.ccq")
    try:
        server.wait_until_ready()
        with Client(server.url) as client:
            client.index(range(400), PAIRS)
            hits = client.search({"text": PAIRS["text"][7]}, database="image", limit=3)
        # Negative numbers come behind the address, where node takes them for no options of its own.
        result = run("node", "made/search.js", server.url, *map(str, PAIRS["text"][7].tolist()), cwd=project)
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        assert found["code"] == "invalid_features"
        assert [hit["id"] for hit in found["best"]] == hits.ids
        assert [hit["distance"] for hit in found["best"]] == pytest.approx(hits.distances.tolist(), abs=1e-6)
    finally:
        server.kill()


def test_the_lock_names_no_registry():
    lock = (SOURCE / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock
    assert not re.search(
        r"https?://(?!(?:\w+\.)*(?:github\.com|opencollective\.com|paypal\.me|tidelift\.com))", lock
    ), lock
