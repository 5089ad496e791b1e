"""What routes share: the runtime, names from the path, and the problems that they document."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Path, Request
from starlette.convertors import Convertor, register_url_convertor

from service import errors
from service.access import caller_of
from service.errors import Fault, InvalidRequestError
from service.runtime import Runtime
from service.schemas.names import CollectionPath, check_id
from service.watching import note

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
    settings = request.app.state.runtime.settings
    return _permitted(request, str(request.path_params.get("collection", settings.default_collection)))


async def _named_collection(request: Request, collection: CollectionPath) -> str:
    return _permitted(request, collection)


def _permitted(request: Request, collection: str) -> str:
    note(request.scope, collection=collection)
    caller_of(request.scope).check_collection(collection)
    return collection


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


RuntimeArg = Annotated[Runtime, Depends(_runtime)]
CollectionName = Annotated[str, Depends(collection_name)]
"""The collection that the path names, or the default one; of those that the caller may use."""
NamedCollection = Annotated[str, Depends(_named_collection)]
"""The collection that the path names; of those that the caller may use."""
ItemIdArg = Annotated[str, Depends(_item_id)]
