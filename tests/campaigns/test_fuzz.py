"""Whatever a client sends: no error is the server's, and each has the one shape.

For longer by hand: `CCQ_TEST_EXAMPLES=500 python -m pytest tests/campaigns/test_fuzz.py` (a hundred times as long).
"""

import asyncio
import contextlib
import json
import os
import random
import re
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.campaigns.bodies import ENCODERS, GOOD, TEXTS, nearly_right
from tests.campaigns.replies import assert_reply
from tests.service.encoders.fakes import serving
from tests.service.harness import fill

EXAMPLES = int(os.environ.get("CCQ_TEST_EXAMPLES", "5"))
DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi/openapi.json").read_text(encoding="utf-8"))
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()]
KNOWN = {"collection": "default", "model": "tiny", "id": "item-1"}
CONFORMANCE = [status_code_conformance, content_type_conformance, response_schema_conformance]

KINDS = ["application/json"] * 20 + [
    "application/json; charset=utf-8",
    "text/plain",
    "application/xml",
    "a/b/c",
    "é",
    "",
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        service = serving(tmp_path_factory.mktemp("fuzz"), patch)
        yield service
        service.close()


def prepare(service):
    """Let the default collection be there, with its items and encoders."""
    service.create()
    service.ok("PUT", "/collections/default", {"model": "tiny", "encoders": ENCODERS})
    fill(service)


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_requests_made_from_the_openapi_document(service, operation, mode):
    prepare(service)
    names = {name: KNOWN[name] for name in KNOWN if f"{{{name}}}" in operation.path}
    for given_names in [None, names] if names else [None]:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=EXAMPLES < 20,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode, path_parameters=given_names))
        def send(case):
            request = case.as_transport_kwargs(base_url="http://test")
            # As HTTP has them; httpx sends ASCII alone.
            request["headers"] = {name: value.encode("latin-1") for name, value in request["headers"].items()}
            del request["cookies"]
            if "data" in request:
                request["content"] = request.pop("data")
            response = service.request(request.pop("method"), request.pop("url"), **request)
            assert_reply(response, response.request.content, operation.path)
            case.validate_response(response, checks=CONFORMANCE)

        with contextlib.suppress(Unsatisfiable):  # where nothing can be wrong
            send()


@pytest.mark.parametrize(("method", "path"), GOOD)
def test_bodies_that_are_nearly_right(service, method, path):
    prepare(service)
    rng = random.Random(f"{method} {path}" if EXAMPLES < 20 else None)
    for good in GOOD[method, path]:
        text = json.dumps(good).encode()
        first = service.request(method, path, content=text, headers={"Content-Type": "application/json"})
        assert first.status_code in (200, 422), first.text
        assert_reply(first, text, path)
        for _ in range(30 * EXAMPLES):
            body = nearly_right(good, rng)
            headers = {"Content-Type": rng.choice(KINDS).encode("utf-8")}
            assert_reply(service.request(method, path, content=body, headers=headers), body, path)


def test_searches_that_come_together_do_not_harm_each_other(service):
    prepare(service)
    rng = random.Random(1 if EXAMPLES < 20 else None)
    good = GOOD["POST", "/search"]
    texts = [json.dumps(body).encode() for body in good]
    headers = {"Content-Type": "application/json"}
    alone = [service.request("POST", "/search", content=text, headers=headers) for text in texts]

    async def together(bodies):
        return await asyncio.gather(*(service.client.post("/search", content=body, headers=headers) for body in bodies))

    for _ in range(10 * EXAMPLES):
        bodies = [*texts, *(nearly_right(rng.choice(good), rng) for _ in range(14))]
        rng.shuffle(bodies)
        for body, reply in zip(bodies, service.run(together(bodies)), strict=True):
            assert_reply(reply, body, "/search")
            if body in texts:
                expected = alone[texts.index(body)]
                assert reply.status_code == expected.status_code, reply.text
                assert _found(reply) == _found(expected)


def _found(reply):
    """What was found, without what differs each time."""
    return re.sub(r'"(took_ms|distance|score)":[^,}]*|"(next_cursor|request_id)":"[^"]*"', "", reply.text)


def test_every_route_with_wrong_methods_names_and_bodies(service):
    prepare(service)
    names = ["default", "nothing", "%00", "%FF", "..%2F..", "%F0%9F%90%88", "x" * 600, "a%0Ab", "%ED%A0%80", "-", "%25"]
    bodies = [None, b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000, json.dumps({"items": TEXTS}).encode()]
    tried = 0
    for template in DOCUMENT["paths"]:
        if template == "/metrics":
            continue
        for name in names if "{" in template else [""]:
            path = template
            for parameter in KNOWN:
                path = path.replace(f"{{{parameter}}}", name)
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"):
                for body in bodies:
                    response = service.request(method, path, content=body, headers={"Content-Type": "application/json"})
                    assert_reply(response, body, template)
                    tried += 1
    assert tried > 5000


@pytest.mark.parametrize("path", ["/items", "/collections/default/items"])
def test_query_parameters(service, path):
    service.create()
    for name in ("limit", "cursor", "unknown", "limit[]"):
        for value in [*TEXTS, "0", "-1", "1e3", "9" * 400, "٣", "AAAA", "A" * 11, "_" * 11, "true", "1&limit=2"]:
            assert_reply(service.get(path, params={name: value}), None, path)
