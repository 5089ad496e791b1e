"""What routes share: the runtime, names from the path, and the problems that they document."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Header, Path, Request
from starlette.convertors import Convertor, register_url_convertor

from service import errors
from service.access import caller_of
from service.errors import Fault, InvalidRequestError
from service.places import shorten
from service.responses import REPLAYED
from service.runtime import Runtime
from service.schemas.names import MAX_IDEMPOTENCY_KEY, CollectionPath, check_id
from service.watching import note

_ETAG = re.compile(r'"(\d{1,18})"')

STORE_PROBLEMS = (errors.StorageError, errors.StorageBusyError)
WRITE_PROBLEMS = (*STORE_PROBLEMS, errors.StorageFullError)
BODY_PROBLEMS = (
    errors.EmptyBodyError,
    errors.InvalidJsonError,
    errors.BodyTooLargeError,
    errors.MediaTypeError,
    errors.EncodingError,
    errors.InvalidRequestError,
    errors.MemoryLimitError,
)
COLLECTION_PROBLEMS = (
    errors.UnknownCollectionError,
    errors.CollectionLoadingError,
    errors.CollectionFailedError,
)


VERSIONED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "The item's version, in quotes.", "schema": {"type": "string"}}}}
}
"""Of the `responses` of a route: what it adds to that of a success."""
ONCE: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            REPLAYED: {
                "description": "`true`: the request was done before, and this is the reply of then.",
                "schema": {"type": "string", "enum": ["true"]},
            }
        }
    }
}
"""The same, of a route that takes an `IdempotencyKey`."""


class _AnyText(Convertor[str]):
    """The rest of a path, line feeds too: an item's id may have them, and Starlette's `path` stops at one."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", _AnyText())


async def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


async def collection_name(request: Request) -> str:
    runtime: Runtime = request.app.state.runtime
    return _meant(request, str(request.path_params.get("collection", runtime.settings.default_collection)))


async def _named_collection(request: Request, collection: CollectionPath) -> str:
    return _permitted(request, collection, collection)


async def _meant_collection(request: Request, collection: CollectionPath) -> str:
    return _meant(request, collection)


def _meant(request: Request, collection: str) -> str:
    runtime: Runtime = request.app.state.runtime
    return _permitted(request, collection, runtime.catalog.own_name(collection))


def _permitted(request: Request, collection: str, means: str) -> str:
    note(request.scope, collection=means)
    caller_of(request.scope).check_collection(collection, means)
    return means


async def _item_id(
    request: Request,
    given: Annotated[
        str,
        Path(
            alias="id",
            description="The item's id, percent-encoded; a slash may stay as it is. Clients cannot send `.` or `..` as "
            "a part of a path: such items are reached by `POST /items/delete` and by filters.",
        ),
    ],
) -> str:
    try:
        # The server decodes bytes that are no UTF-8 to U+FFFD, which could name another item.
        raw = request.scope.get("raw_path") or b""
        unquote_to_bytes(raw.partition(b"/items/")[2] or raw).decode("utf-8")
        return check_id(given)
    except UnicodeDecodeError:
        reason = "id: expected percent-encoded UTF-8, got other bytes"
    except ValueError as error:
        reason = f"id: {error}"
    raise InvalidRequestError.from_faults([Fault("{id}", reason)])


def version_of(if_match: str | None) -> int | None:
    """The version in an If-Match; None if any will do. InvalidRequestError if it is none that an ETag had."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _ETAG.fullmatch(if_match.strip())
    if found is None:
        reason = f'If-Match: expected the ETag of the item, as in "7", got {shorten(if_match)}'
        raise InvalidRequestError.from_faults([Fault("If-Match", reason)])
    return int(found[1])


RuntimeArg = Annotated[Runtime, Depends(_runtime)]
CollectionName = Annotated[str, Depends(collection_name)]
"""The own name of the collection that the path means, or of the default one; of those that the caller may use."""
NamedCollection = Annotated[str, Depends(_named_collection)]
"""The name in the path, of a collection and not of an alias; of those that the caller may use."""
MeantCollection = Annotated[str, Depends(_meant_collection)]
"""The own name of the collection that the path means; of those that the caller may use."""
ItemIdArg = Annotated[str, Depends(_item_id)]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="The item's `ETag`: its version, in quotes. Another one gives 412."),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_IDEMPOTENCY_KEY,
        description="Any string that no other request to this collection has had for 24 hours. The same request with "
        "the same key is not done again: it gets the reply of the first time, and the header `Idempotency-Replayed`.",
    ),
]
