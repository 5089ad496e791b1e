"""Routes that act on items: under ``/collections/{collection}``, and without that for the default one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from starlette.responses import Response

from ccq_core.errors import FeatureError, UnknownModalityError
from service import errors
from service.body import json_body, payload_body, read_json
from service.facets import count_values
from service.indexing import prepare_items, store_items
from service.items import delete_item, delete_items, get_item, set_payload
from service.listing import find_items, list_items
from service.responses import Json, written
from service.routes.common import (
    BODY_PROBLEMS,
    COLLECTION_PROBLEMS,
    ONCE,
    STORE_PROBLEMS,
    VERSIONED,
    WRITE_PROBLEMS,
    CollectionName,
    IdempotencyKey,
    IfMatch,
    ItemIdArg,
    RuntimeArg,
    version_of,
)
from service.routes.guard import guarded, needs
from service.schemas import examples
from service.schemas.facets import FacetReply, FacetRequest
from service.schemas.items import (
    DeleteReply,
    DeleteRequest,
    IndexReply,
    IndexRequest,
    ItemPage,
    ListRequest,
    PayloadReply,
    StoredItem,
)
from service.schemas.names import CollectionPath
from service.schemas.search import SearchReply, SearchRequest
from service.watching import note
from service.writing import Asked

router = APIRouter(tags=["items"])

FEATURE_PROBLEMS = (FeatureError, UnknownModalityError, errors.UnencodableError, errors.EncoderFailedError)


@router.post(
    "/index",
    dependencies=[needs("write")],
    response_model=IndexReply,
    responses=guarded(
        *COLLECTION_PROBLEMS,
        *BODY_PROBLEMS,
        *FEATURE_PROBLEMS,
        errors.DuplicateIdError,
        errors.CollectionConflictError,
        errors.VersionMismatchError,
        errors.KeyReusedError,
        *WRITE_PROBLEMS,
    )
    | ONCE,
    openapi_extra=json_body(IndexRequest, **examples.INDEX),
)
async def index(request: Request, runtime: RuntimeArg, name: CollectionName, key: IdempotencyKey = None) -> Response:
    """Index items.

    An item whose id is known replaces the old one. All items or none: the reply says that they are on disk and that
    every search from now on sees them.
    """
    collection = runtime.catalog.collection(name)
    body = await read_json(request, runtime.settings.max_body_bytes)
    prepared = await runtime.writes.run(prepare_items, collection, body, runtime.settings)
    return await runtime.commits.run(lambda: written(store_items(collection, prepared, Asked.of(key, "index", body))))


@router.post(
    "/search",
    dependencies=[needs("search")],
    response_model=SearchReply,
    responses=guarded(
        *COLLECTION_PROBLEMS,
        *BODY_PROBLEMS,
        *FEATURE_PROBLEMS,
        errors.UnknownDatabaseError,
        errors.UnknownItemError,
        errors.ReplyTooLargeError,
        *STORE_PROBLEMS,
    ),
    openapi_extra=json_body(SearchRequest, **examples.SEARCH),
)
async def search(request: Request, runtime: RuntimeArg, name: CollectionName) -> Response:
    """Search.

    By features of one or several modalities (`query`), of several queries at once (`queries`), by a stored item
    (`query_id`), or by examples (`query_by`). The results are exact with respect to the codes, of one moment, and a
    filter never makes them fewer than `limit` while that many items match.
    """
    collection = runtime.catalog.collection(name)
    body = await read_json(request, runtime.settings.max_body_bytes)
    found = await runtime.searches.search(collection, body)
    note(request.scope, limit=found.limit, queries=found.queries)
    return found.reply


@router.post(
    "/facets",
    dependencies=[needs("search")],
    response_model=FacetReply,
    responses=guarded(*COLLECTION_PROBLEMS, *BODY_PROBLEMS, errors.TooManyValuesError, *STORE_PROBLEMS),
    openapi_extra=json_body(FacetRequest, **examples.FACETS),
)
async def facets(request: Request, runtime: RuntimeArg, name: CollectionName) -> Response:
    """Count the values under a key of payloads, over all items or those that match a filter."""
    collection = runtime.catalog.collection(name)
    body = await read_json(request, runtime.settings.max_body_bytes)
    return await runtime.reads.run(lambda: Json(count_values(collection, body, runtime.settings)))


@router.get(
    "/items",
    dependencies=[needs("search")],
    response_model=ItemPage,
    responses=guarded(*COLLECTION_PROBLEMS, errors.InvalidRequestError, *STORE_PROBLEMS),
)
async def list_(
    runtime: RuntimeArg,
    name: CollectionName,
    limit: Annotated[int, Query(ge=1, description="How many items a page has; fewer if they are long.")] = 100,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
    with_codes: Annotated[bool, Query(description="Give the code rows of items.")] = False,
    with_features: Annotated[
        bool, Query(description="Give the features of items, for collections that keep them.")
    ] = False,
) -> Response:
    """List items in order of insertion, page by page.

    Each page is of its own moment: items that are inserted while one turns the pages come on a later page.
    """
    asked = ListRequest(filter=None, limit=limit, cursor=cursor, with_codes=with_codes, with_features=with_features)
    collection = runtime.catalog.collection(name)
    return await runtime.reads.run(lambda: Json(list_items(collection, asked, runtime.settings, at="?")))


@router.post(
    "/items/list",
    dependencies=[needs("search")],
    response_model=ItemPage,
    responses=guarded(*COLLECTION_PROBLEMS, *BODY_PROBLEMS, *STORE_PROBLEMS),
    openapi_extra=json_body(ListRequest, **examples.LIST),
)
async def list_those_that_match(request: Request, runtime: RuntimeArg, name: CollectionName) -> Response:
    """List or count items, all or those that match a filter, in order of insertion, page by page.

    Each page is of its own moment.
    """
    collection = runtime.catalog.collection(name)
    body = await read_json(request, runtime.settings.max_body_bytes)
    return await runtime.reads.run(lambda: Json(find_items(collection, body, runtime.settings)))


@router.post(
    "/items/delete",
    dependencies=[needs("write")],
    response_model=DeleteReply,
    responses=guarded(*COLLECTION_PROBLEMS, *BODY_PROBLEMS, errors.KeyReusedError, *WRITE_PROBLEMS) | ONCE,
    openapi_extra=json_body(DeleteRequest, **examples.DELETE),
)
async def delete_many(
    request: Request, runtime: RuntimeArg, name: CollectionName, key: IdempotencyKey = None
) -> Response:
    """Delete items by id or by filter. Ids that no item has are passed over."""
    collection = runtime.catalog.collection(name)
    body = await read_json(request, runtime.settings.max_body_bytes)
    asked = Asked.of(key, "delete", body)
    return await runtime.writes.run(lambda: written(delete_items(collection, body, runtime.settings, asked)))


@router.get(
    "/items/{id:text}",
    dependencies=[needs("search")],
    response_model=StoredItem,
    responses=guarded(*COLLECTION_PROBLEMS, errors.UnknownItemError, errors.InvalidRequestError, *STORE_PROBLEMS)
    | VERSIONED,
)
async def get(runtime: RuntimeArg, name: CollectionName, item_id: ItemIdArg) -> Response:
    """One item. The header `ETag` is its version in quotes, for `If-Match`."""
    collection = runtime.catalog.collection(name)

    def work() -> Response:
        found = get_item(collection, item_id)
        return Json(found, headers={"ETag": f'"{found["version"]}"'})

    return await runtime.reads.run(work)


@router.delete(
    "/items/{id:text}",
    dependencies=[needs("write")],
    status_code=204,
    responses=guarded(
        *COLLECTION_PROBLEMS,
        errors.UnknownItemError,
        errors.VersionMismatchError,
        errors.InvalidRequestError,
        *WRITE_PROBLEMS,
    ),
)
async def delete(runtime: RuntimeArg, name: CollectionName, item_id: ItemIdArg, if_match: IfMatch = None) -> Response:
    """Delete one item; with `If-Match` only if it has this version."""
    collection = runtime.catalog.collection(name)
    await runtime.writes.run(delete_item, collection, item_id, version_of(if_match))
    return Response(status_code=204)


@router.put(
    "/items/{id:text}/payload",
    dependencies=[needs("write")],
    response_model=PayloadReply,
    responses=guarded(
        *COLLECTION_PROBLEMS,
        *BODY_PROBLEMS,
        errors.UnknownItemError,
        errors.VersionMismatchError,
        errors.KeyReusedError,
        *WRITE_PROBLEMS,
    )
    | ONCE,
    openapi_extra=payload_body(**examples.PAYLOAD),
)
async def put_payload(
    request: Request,
    runtime: RuntimeArg,
    name: CollectionName,
    item_id: ItemIdArg,
    if_match: IfMatch = None,
    key: IdempotencyKey = None,
) -> Response:
    """Replace the payload of an item, an object or null; with `If-Match` only if the item has this version.

    The item keeps its codes and its place in the order. The reply says that the payload is on disk and that every
    search from now on sees it.
    """
    collection = runtime.catalog.collection(name)
    version = version_of(if_match)
    body = await read_json(request, runtime.settings.max_body_bytes)
    asked = Asked.of(key, "payload", item_id, str(version), body)
    return await runtime.writes.run(
        lambda: written(set_payload(collection, item_id, body, runtime.settings, version, asked))
    )


def include(app: FastAPI) -> None:
    """Put the routes into an app, twice: for the default collection, and for any."""

    async def documented(collection: CollectionPath) -> None:
        """Checks and documents the part of the path that `CollectionName` reads."""

    app.include_router(router)
    app.include_router(router, prefix="/collections/{collection}", dependencies=[Depends(documented)])
