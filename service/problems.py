"""Errors as clients see them: RFC 9457 problems. The one table from error classes to statuses and codes is here.

Programs branch on ``code``, which is stable; ``detail`` is for people and may change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ccq_core import errors as core
from service import errors
from service.access import sees_all
from service.errors import CoreInputError, Fault, ServiceError, UnauthenticatedError, UnavailableError, UnknownNameError
from service.places import shorten
from service.requestid import request_id
from service.schemas.names import told

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_MOST_FAULTS = 20
_LONGEST = 1000


@dataclass(frozen=True)
class Kind:
    """A kind of problem: its HTTP status, its stable code, and a title that is the same each time."""

    status: int
    code: str
    title: str


INTERNAL = Kind(500, "internal_error", "The server failed")
NO_ROUTE = Kind(404, "route_not_found", "There is nothing at this path")
NO_METHOD = Kind(405, "method_not_allowed", "This path does not have this method")

KINDS: dict[type[Exception], Kind] = {
    # The core's
    core.CCQError: INTERNAL,
    core.NotFittedError: INTERNAL,
    core.InvalidInputError: Kind(422, "invalid_input", "Numbers or settings cannot be used"),
    core.FeatureError: Kind(422, "invalid_features", "A feature vector cannot be used"),
    core.UnknownModalityError: Kind(422, "unknown_modality", "The model has no such modality"),
    core.UnknownIdError: Kind(404, "item_not_found", "There is no such item"),
    core.ModelFileError: Kind(422, "model_invalid", "The file is no usable model"),
    core.ModelFormatError: Kind(422, "model_format", "The file is no model"),
    core.ModelTruncatedError: Kind(422, "model_truncated", "The end of the model file is missing"),
    core.ModelCorruptError: Kind(422, "model_corrupt", "The model file is damaged"),
    core.ModelVersionError: Kind(422, "model_version", "The model file is of a newer version"),
    # Requests
    errors.ServiceError: INTERNAL,
    errors.RequestError: Kind(400, "bad_request", "The request cannot be served"),
    errors.UnauthenticatedError: Kind(401, "unauthenticated", "The request has no valid API key"),
    errors.ForbiddenError: Kind(403, "forbidden", "The API key does not allow this"),
    errors.ForeignOriginError: Kind(403, "foreign_origin", "Pages of elsewhere may not use this server"),
    errors.ClientGoneError: Kind(400, "client_gone", "The request was not completed"),
    errors.EmptyBodyError: Kind(400, "empty_body", "The request has no body"),
    errors.InvalidJsonError: Kind(400, "invalid_json", "The body is not JSON"),
    errors.MediaTypeError: Kind(415, "unsupported_media_type", "The body is not declared to be JSON"),
    errors.EncodingError: Kind(415, "unsupported_encoding", "The body is compressed"),
    errors.BodyTooLargeError: Kind(413, "body_too_large", "The body is too long"),
    errors.ReplyTooLargeError: Kind(422, "reply_too_large", "The reply would be too long"),
    errors.TooManyValuesError: Kind(422, "too_many_values", "There are too many distinct values"),
    errors.InvalidRequestError: Kind(422, "invalid_request", "The request is not as it should be"),
    errors.CoreInputError: Kind(422, "invalid_input", "Numbers or settings cannot be used"),
    errors.DuplicateIdError: Kind(422, "duplicate_id", "The same id is there twice"),
    errors.UnknownDatabaseError: Kind(422, "unknown_database", "The model has no such database"),
    errors.UnknownCollectionError: Kind(404, "collection_not_found", "There is no such collection"),
    errors.UnknownModelError: Kind(404, "model_not_found", "There is no such model"),
    errors.UnknownItemError: Kind(404, "item_not_found", "There is no such item"),
    errors.CollectionConflictError: Kind(409, "collection_conflict", "The collection is another than that"),
    errors.ModelInUseError: Kind(409, "model_in_use", "The model is in use"),
    errors.UnknownAliasError: Kind(404, "alias_not_found", "There is no such alias"),
    errors.AliasConflictError: Kind(409, "alias_conflict", "An alias is in the way"),
    errors.UnknownEncoderError: Kind(404, "encoder_not_found", "There is no such encoder"),
    errors.EncoderMismatchError: Kind(422, "encoder_mismatch", "The encoder does not fit the model"),
    errors.UnencodableError: Kind(422, "cannot_encode", "A text or an image cannot be encoded"),
    errors.UnknownSnapshotError: Kind(404, "snapshot_not_found", "There is no such snapshot"),
    errors.SnapshotInProgressError: Kind(409, "snapshot_in_progress", "Another snapshot is being made"),
    errors.ReencodingError: Kind(409, "reencode_in_progress", "The collection is being encoded anew"),
    errors.ReencodeError: Kind(422, "cannot_reencode", "The collection cannot be encoded with this model"),
    errors.UnknownJobError: Kind(404, "job_not_found", "There is no such job"),
    errors.JobsFullError: Kind(409, "jobs_full", "Too many jobs are waiting"),
    errors.VersionMismatchError: Kind(412, "version_mismatch", "An item is of another version"),
    errors.KeyReusedError: Kind(422, "idempotency_key_reused", "Another request had this Idempotency-Key"),
    # The state of the service
    errors.UnavailableError: Kind(503, "unavailable", "The service cannot answer now"),
    errors.CollectionLoadingError: Kind(503, "collection_loading", "The collection is being loaded"),
    errors.CollectionFailedError: Kind(503, "collection_failed", "The collection could not be loaded"),
    errors.NotReadyError: Kind(503, "not_ready", "The service is not ready"),
    errors.OverloadedError: Kind(503, "overloaded", "Too many requests are in progress"),
    errors.RequestTimeoutError: Kind(503, "timeout", "The request took too long"),
    errors.MemoryLimitError: Kind(507, "memory", "What is in progress takes too much memory"),
    errors.TrainingMemoryError: Kind(507, "memory", "What is in progress takes too much memory"),
    errors.EncoderFailedError: Kind(500, "encoder_failed", "An encoder failed"),
    errors.StorageFullError: Kind(507, "storage_full", "The disk is full"),
    errors.StorageBusyError: Kind(503, "storage_busy", "The database is locked by another program"),
    errors.StorageError: Kind(500, "storage_error", "The database failed"),
    errors.JobFailedError: Kind(500, "job_failed", "The job ended without a result"),
}


class FaultModel(BaseModel):
    """One thing that is wrong."""

    pointer: str = Field(
        description="`#/items/3/id`: a JSON pointer into the body; `#/text/5`: row 5 of array `text` of a file of "
        "arrays; `?limit`: a query parameter; `{id}`: a part of the path; `If-Match`: a header; "
        "`/collections/default`: a resource."
    )
    detail: str


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(description="`urn:ccq-search:problem:` and the code.")
    title: str = Field(description="What the code means.")
    status: int
    detail: str = Field(description="What was received, what was expected. For people; may change.")
    code: str = Field(description="Stable: programs branch on this.")
    request_id: str = Field(description="Also in the header X-Request-Id and in the server's log.")
    errors: list[FaultModel] = Field(description="Each fault with its place; empty where no single place is at fault.")


def kind_of(error: Exception) -> Kind:
    """The kind of problem that an error is; that of the cause where the core refused something."""
    if isinstance(error, CoreInputError):
        return kind_of(error.cause)
    return next((KINDS[cls] for cls in type(error).__mro__ if cls in KINDS), INTERNAL)


def problem_response(
    request: Request,
    kind: Kind,
    detail: str,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The response to a problem. Long texts are cut: they may quote what a client sent."""
    body = {
        "type": f"urn:ccq-search:problem:{kind.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": _cut(detail),
        "code": kind.code,
        "request_id": request_id(request.scope),
        "errors": [{"pointer": _cut(f.pointer), "detail": _cut(f.detail)} for f in faults[:_MOST_FAULTS]],
    }
    return Response(orjson.dumps(body), kind.status, headers, MEDIA_TYPE)


def known_problem(request: Request, error: Exception) -> Response:
    """The response to an error of the service or the core that is raised on purpose."""
    faults = error.faults if isinstance(error, ServiceError) else ()
    headers = {}
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, UnavailableError) and error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    detail = str(error)
    if isinstance(error, UnknownNameError) and not sees_all(request.scope):
        detail = error.discreet
    return problem_response(request, kind_of(error), detail, faults, headers)


def internal_problem(request: Request, error: Exception) -> Response:
    """The response to an error that nobody foresaw: logged with its traceback, nothing of it in the response."""
    log.error("request %s failed", request_id(request.scope), exc_info=error)
    detail = f"an unexpected error; the server's log has the details under {request_id(request.scope)}"
    return problem_response(request, INTERNAL, detail)


def problem_responses(*kinds: type[Exception] | Kind) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route for the OpenAPI document."""
    codes: dict[int, list[str]] = {}
    for item in kinds:
        kind = item if isinstance(item, Kind) else KINDS[item]
        codes.setdefault(kind.status, []).append(kind.code)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": ", ".join(f"`{code}`" for code in found), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status, found in codes.items()
    }


def install(app: FastAPI) -> None:
    """Make every error of the app a problem. What is left over is caught by `service.middleware`."""
    app.add_exception_handler(ServiceError, _when_known)
    app.add_exception_handler(core.CCQError, _when_known)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_parameter_error)


async def _when_known(request: Request, error: Exception) -> Response:
    return on_known_error(request, error)


def on_known_error(request: Request, error: Exception) -> Response:
    """The response to an error of the service or the core; one that is the server's own fault is logged as well."""
    kind = kind_of(error)
    if kind is INTERNAL:
        return internal_problem(request, error)
    if kind.status >= 500 and error.__cause__ is not None:
        log.error("request %s: %s", request_id(request.scope), error, exc_info=error)
    return known_problem(request, error)


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Starlette's own: no such path, no such method."""
    if not isinstance(error, HTTPException):
        raise error
    place = f"{request.method} {shorten(request.url.path)}"
    if error.status_code == NO_METHOD.status:
        allowed = (error.headers or {}).get("Allow", "")
        return problem_response(request, NO_METHOD, f"{place}: expected one of {allowed}", (), error.headers)
    if error.status_code == NO_ROUTE.status:
        return problem_response(request, NO_ROUTE, f"{place}: there is nothing here; GET /docs lists what there is")
    return internal_problem(request, error)


async def _on_parameter_error(request: Request, error: Exception) -> Response:
    """FastAPI's own: a part of the path, a query parameter or a header."""
    if not isinstance(error, RequestValidationError):
        raise error
    faults = []
    for found in error.errors():
        source, name = found["loc"][0], found["loc"][-1]
        pointer = {"query": f"?{name}", "header": name}.get(source, f"{{{name}}}")
        faults.append(Fault(pointer, f"{name}: {told(found)}, got {shorten(found['input'])}"))
    refused = errors.InvalidRequestError.from_faults(faults)
    return known_problem(request, refused)


def _cut(text: str) -> str:
    # A lone surrogate has no UTF-8; none should get here, and if one does it must not turn a 4xx into a 500.
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return text.encode("utf-8", "replace").decode()
