"""The OpenAPI document: committed, complete, and with examples that are what they show."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from service.openapi import render
from service.schemas import examples
from service.schemas.admin import CollectionRequest
from service.schemas.facets import FacetRequest
from service.schemas.items import DeleteRequest, IndexRequest
from service.schemas.search import SearchRequest
from service.schemas.training import TrainingRequest

COMMITTED = Path(__file__).parents[2] / "openapi" / "openapi.json"
DOCUMENT = json.loads(render())
NOT_JSON = {"/metrics": "text/plain", "/snapshots/{snapshot}": "application/x-tar"}
OPERATIONS = [
    (f"{method.upper()} {path}", operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def test_the_committed_document_is_the_apps():
    """Renew it by `python -m service.openapi > openapi/openapi.json`."""
    assert COMMITTED.read_text(encoding="utf-8") == render()


def test_the_app_serves_it(bare):
    assert bare.get("/openapi.json").json() == DOCUMENT
    assert bare.get("/docs").status_code == 200


def test_every_reference_leads_somewhere():
    def references(value):
        if isinstance(value, dict):
            yield from [value["$ref"]] if "$ref" in value else []
            value = list(value.values())
        if isinstance(value, list):
            for inner in value:
                yield from references(inner)

    found = set(references(DOCUMENT))
    assert len(found) > 15
    for reference in found:
        target = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


def test_operations_have_distinct_names_and_words():
    names = [operation["operationId"] for _, operation in OPERATIONS]
    assert len(set(names)) == len(names) == 47
    assert {"items_search", "collection_items_search", "models_put", "operations_livez"} <= set(names)
    for name, operation in OPERATIONS:
        assert operation["description"], name


@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
def test_requests_replies_and_problems_have_schemas(name, operation):
    method, path = name.split()
    if method in ("POST", "PUT") and path != "/snapshots":
        for content in operation["requestBody"]["content"].values():
            assert content["schema"]
    success = [status for status in operation["responses"] if status.startswith("2")]
    assert success
    for status, response in operation["responses"].items():
        if status == "204":
            continue
        if path in NOT_JSON and status == "200":
            assert list(response["content"]) == [NOT_JSON[path]]
        elif status.startswith("2"):
            assert response["content"]["application/json"]["schema"]["$ref"]
        else:
            schema = response["content"]["application/problem+json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Problem"}
            assert "`" in response["description"]
    if "{id}" in path or path.endswith(("index", "search", "facets", "items")):
        assert "404" in operation["responses"]


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        (IndexRequest, examples.INDEX),
        (SearchRequest, examples.SEARCH),
        (FacetRequest, examples.FACETS),
        (DeleteRequest, examples.DELETE),
        (CollectionRequest, examples.COLLECTION),
        (TrainingRequest, examples.TRAINING),
    ],
)
def test_examples_are_what_they_show(schema: type[BaseModel], given):
    assert given
    for value in given.values():
        schema.model_validate(value)
