"""The REST reference: it has every route, and its curl calls do what they say."""

import itertools
import json
import re
import shlex

import numpy as np
import pytest

from ccq_core import CCQ
from docsite import rest
from tests.documents import ROOT
from tests.service.harness import InProcess

DOCUMENT = json.loads((ROOT / "openapi/openapi.json").read_text(encoding="utf-8"))
PAGE = rest.page(DOCUMENT)
CALLS = [
    pytest.param(method, path, command, id=f"{method} {path} {title}")
    for method, path, operation in rest.routes(DOCUMENT)
    for title, command in rest.calls(DOCUMENT, method, path, operation)
]

RNG = np.random.default_rng(0)
FEATURES = {"image": RNG.standard_normal((300, 3)), "text": RNG.standard_normal((300, 2))}
MODEL = CCQ(bits=8, iterations=2).fit(FEATURES).to_bytes()


def test_every_route_and_schema_is_there_and_the_page_is_always_the_same():
    for path, methods in DOCUMENT["paths"].items():
        for method in methods:
            assert f"### {method.upper()} {path} " in PAGE or f"Also: `{method.upper()} {path}`" in PAGE, (method, path)
    for name in DOCUMENT["components"]["schemas"]:
        assert f"### {name} " in PAGE
    assert rest.page(json.loads(json.dumps(DOCUMENT))) == PAGE
    assert re.findall(r"^### POST (\S+)", PAGE, flags=re.MULTILINE)[:2] == ["/index", "/search"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One service for all calls."""
    service = InProcess(tmp_path_factory.mktemp("rest") / "data")
    yield service
    service.close()


@pytest.fixture
def ready(served, tmp_path):
    """The service with what the calls speak of, whatever was called before: a model, items, an alias."""
    np.savez(tmp_path / "features.npz", **FEATURES)
    (tmp_path / "wiki-32.ccq").write_bytes(MODEL)
    assert served.request("PUT", f"/models/{rest.PATHS['model']}", content=MODEL).status_code in (200, 201)
    for name in ("default", rest.PATHS["collection"]):
        served.ok("PUT", f"/collections/{name}", {"model": rest.PATHS["model"], "indexes": ["year"]})
    served.ok("PUT", f"/aliases/{rest.PATHS['alias']}", {"collection": "default"})
    served.ok("POST", "/items/delete", {"ids": ["p1", "p2", "p3"]})
    for item in ("p1", "p2"):
        served.ok("POST", "/index", {"items": [{"id": item, "features": {"image": [0.1, 0.9, 0.4]}}]})
    return served


# Jobs and snapshots have names of their time, so those of the page are not here; the rest is what the state allows.
REFUSED = {
    ("get", "/jobs/{job}"): "job_not_found",
    ("delete", "/jobs/{job}"): "job_not_found",
    ("get", "/snapshots/{snapshot}"): "snapshot_not_found",
    ("delete", "/snapshots/{snapshot}"): "snapshot_not_found",
    ("delete", "/models/{model}"): "model_in_use",
    ("post", "/models/{model}/train"): "model_in_use",
    ("post", "/collections/{collection}/reencode"): "model_not_found",
}


@pytest.mark.parametrize(("method", "path", "command"), CALLS)
def test_calls_are_what_the_service_takes(method, path, command, ready, tmp_path):
    words = shlex.split(command.replace("\\\n", ""))
    assert words[:2] == ["curl", "-s"]
    headers, body, sent = {}, None, "GET"
    for flag, value in itertools.pairwise(words):
        match flag:
            case "-X":
                sent = value
            case "-H":
                headers = dict([value.split(": ")])
            case "-d":
                body = value.encode()
            case "--data-binary":
                body = (tmp_path / value.removeprefix("@")).read_bytes()
    (url,) = [word for word in words if word.startswith("localhost:8000/")]
    assert sent == method.upper()
    response = ready.request(sent, url.removeprefix("localhost:8000"), headers=headers, content=body)
    code = REFUSED.get((method, path))
    if code is None:
        assert response.status_code < 300, response.text
    else:
        assert response.json()["code"] == code, response.text
