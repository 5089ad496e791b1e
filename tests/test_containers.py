"""The files for containers: pinned, and as unprivileged as can be."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
SERVICES = re.split(
    r"^  (?=\w+:$)", COMPOSE.partition("\nservices:\n")[2].partition("\nvolumes:\n")[0], flags=re.MULTILINE
)[1:]


def test_each_container_is_confined():
    assert [service.partition(":")[0] for service in SERVICES] == ["ccq", "prometheus", "grafana"]
    for service in SERVICES:
        assert "    read_only: true\n" in service
        assert "    cap_drop: [ALL]\n" in service
        assert "      - no-new-privileges:true\n" in service
        for port in re.findall(r"^      - \"(.*:\d+)\"$", service, flags=re.MULTILINE):
            assert port.startswith("127.0.0.1:")


def test_images_of_others_are_pinned():
    images = re.findall(r"image: (\S+)", COMPOSE)
    assert len(images) == 3
    for image in images:
        assert image == "ccq-search" or re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", image), image


def test_files_that_are_mounted_are_there():
    mounted = re.findall(r"- (\./[^:]+):", COMPOSE)
    assert len(mounted) == 3
    for path in mounted:
        assert (ROOT / path).exists(), path


def test_the_dashboard_asks_the_source_that_there_is():
    source = (ROOT / "docker/grafana/provisioning/datasources/prometheus.yml").read_text()
    (uid,) = re.findall(r"uid: (\w+)", source)
    dashboard = json.loads((ROOT / "docker/grafana/dashboards/ccq.json").read_text())
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {uid}
