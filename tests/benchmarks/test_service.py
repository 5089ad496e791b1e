"""What the service is measured with."""

import re

import orjson
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from benchmarks.service.__main__ import constant_app, main
from tests.service.harness import InProcess


def test_a_store_and_its_queries(tmp_path):
    data, script = tmp_path / "data", tmp_path / "search.lua"
    assert CliRunner().invoke(main, ["store", str(data), "--items", "300", "--bits", "16"]).exit_code == 0
    assert CliRunner().invoke(main, ["lua", str(script), "--filtered"]).exit_code == 0
    bodies = (tmp_path / "search.bodies").read_bytes().splitlines()
    assert len(bodies) == 2000
    assert str(tmp_path / "search.bodies") in script.read_text()
    service = InProcess(data)
    try:
        service.wait_until_ready()
        (wanted,) = orjson.loads(bodies[0])["filter"]["must"]
        hits = service.ok("POST", "/search", orjson.loads(bodies[0]))["results"]
        assert [hit["payload"]["c"] for hit in hits] == [wanted["match"]["value"]] * (wanted["match"]["value"] < 300)
    finally:
        service.close()


def test_the_floor_answers_the_same_requests():
    with TestClient(constant_app()) as client:
        assert client.post("/search", json={"query": {"image": [1.0]}}).json()["results"] == []


@pytest.mark.parametrize("options", [["--keep", "int8"], ["--online"], ["--modalities", "1"]])
def test_bulk_import_and_export(tmp_path, options):
    result = CliRunner().invoke(main, ["bulk", str(tmp_path), "--items", "300", "--bits", "16", *options])
    assert result.exit_code == 0, result.output
    for what in ("index", "export", "on disk", "in memory"):
        assert re.search(rf"^{what}.*: -?[0-9,.]+ ", result.output, re.MULTILINE), result.output
    assert len((tmp_path / "exported" / "items.jsonl").read_bytes().splitlines()) == 300
