"""The OpenAPI document that the app gives, and that generated clients are made from."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from service.problems import Problem
from service.schemas.admin import CollectionRequest, ReencodeRequest
from service.schemas.aliases import AliasRequest
from service.schemas.facets import FacetRequest
from service.schemas.items import DeleteRequest, IndexRequest, ListRequest
from service.schemas.search import SearchRequest
from service.schemas.training import TrainingRequest

DESCRIPTION = """\
Cross-modal search over short codes.

Items are indexed by feature vectors of one or several modalities, and found by features of any of them. Paths without
`/collections/{collection}` act on the default collection.

Errors are `application/problem+json` (RFC 9457). Programs branch on `code`; each path lists the codes it may give.
Every response has an `X-Request-Id`: the request's own, if it sent a sane one.
"""

TAGS = [
    {"name": "items", "description": "Index, search, read and delete items."},
    {"name": "collections", "description": "Collections of items that one model encodes."},
    {"name": "aliases", "description": "Other names of collections."},
    {"name": "models", "description": "Models, as `ccq train` makes them."},
    {"name": "snapshots", "description": "Copies of everything that the server holds."},
    {"name": "jobs", "description": "Work in the background."},
    {"name": "operations", "description": "For those who run the server."},
]

# Bodies that routes read themselves (see `service.body`), so FastAPI does not know them.
BODIES = (
    IndexRequest,
    SearchRequest,
    FacetRequest,
    DeleteRequest,
    ListRequest,
    CollectionRequest,
    ReencodeRequest,
    TrainingRequest,
    AliasRequest,
    Problem,
)
_REFERENCE = "#/components/schemas/{model}"


def operation_id(route: APIRoute) -> str:
    """A name that generated clients can use for a method: ``items_search``, ``collection_items_search``."""
    items = route.tags[0] == "items"
    prefix = "collection_" if items and route.path.startswith("/collections/{collection}/") else ""
    return f"{prefix}{route.tags[0]}_{route.name.rstrip('_')}"


def install(app: FastAPI) -> None:
    """Make the app give `document` at /openapi.json."""
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            made.update(document(app))
        return made

    app.openapi = openapi  # type: ignore[method-assign]


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an app, with the bodies that its routes read themselves."""
    made = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
    )
    _, bodies = models_json_schema([(model, "validation") for model in BODIES], ref_template=_REFERENCE)
    schemas = made["components"]["schemas"]
    schemas.update(bodies["$defs"])
    for unused in ("HTTPValidationError", "ValidationError"):  # problems take their place
        schemas.pop(unused, None)
    _document_key_header(made)
    return made


def _document_key_header(document: dict[str, Any]) -> None:
    """Say that a key may come in a header of its own as well, wherever one is asked for."""
    document["components"]["securitySchemes"]["api_key"] = {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same in a header of its own.",
    }
    for methods in document["paths"].values():
        for operation in methods.values():
            for required in operation.get("security", [])[:1]:
                operation["security"].append({"api_key": required["bearer"]})
