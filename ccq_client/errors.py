"""Everything that the client raises.

::

    CCQError
    ├── InputError (ValueError)                   an argument cannot be sent; nothing was sent
    ├── TransportError (ConnectionError)          nothing answered
    │   └── TransportTimeoutError (TimeoutError)  nothing answered in time
    ├── UnexpectedReplyError                      something answered that is no CCQ service
    ├── IndexingError                             only some rows were indexed; says which
    ├── JobError                                  a job that was waited for failed, or was cancelled
    ├── WaitTimeoutError (TimeoutError)           a job took longer than somebody would wait
    └── ApiError                                  the service refused: `code` is stable, `detail` is for people
        ├── RequestError (ValueError)             the request is not as it should be
        │   ├── FeaturesError                     features do not fit the model, or cannot be made
        │   ├── ModelFileError                    a file is no usable model
        │   └── IdempotencyKeyReusedError         another request had this key
        ├── UnauthenticatedError (PermissionError)
        ├── ForbiddenError (PermissionError)
        ├── NotFoundError (LookupError)
        │   ├── AliasNotFoundError
        │   ├── CollectionNotFoundError
        │   ├── ItemNotFoundError
        │   ├── JobNotFoundError
        │   ├── ModelNotFoundError
        │   └── SnapshotNotFoundError
        ├── ConflictError                         it does not fit what is there
        │   └── VersionMismatchError              an item is of another version
        ├── UnavailableError                      not now; the same request may succeed later
        └── ServerError                           the service failed, or has no room
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ccq_client.jobs import Job


class CCQError(Exception):
    """Base of all errors that the client raises on purpose.

    Attributes
    ----------
    in_doubt:
        Whether what was asked for may have been done all the same: the request arrived, and no answer came.
    """

    in_doubt: bool = False


class InputError(CCQError, ValueError):
    """An argument cannot be sent. Nothing was sent."""


class TransportError(CCQError, ConnectionError):
    """Nothing answered.

    Attributes
    ----------
    url:
        The address that was asked.
    arrived:
        Whether the request, or a part of it, may have arrived.
    passing:
        Whether it may be otherwise the next time.
    """

    def __init__(self, message: str, url: str = "", arrived: bool = False, passing: bool = True) -> None:
        super().__init__(message, url, arrived, passing)
        self.url = url
        self.arrived = arrived
        self.passing = passing

    def __str__(self) -> str:
        return str(self.args[0])


class TransportTimeoutError(TransportError, TimeoutError):
    """Nothing answered within the time that the client waits."""


class UnexpectedReplyError(CCQError):
    """What answered is no CCQ service, or one that this client does not understand."""


class IndexingError(CCQError):
    """Some rows were indexed before a request failed. What failed is the `__cause__`.

    Attributes
    ----------
    stored:
        Numbers of the rows that are stored, ascending.
    unsure:
        Numbers of the rows that may be stored or not: they arrived, and no answer came.
    missing:
        Numbers of all rows that are not known to be stored, those of `unsure` among them: index these again. Rows
        without features are in none of the three.
    """

    def __init__(self, message: str, stored: Sequence[int], unsure: Sequence[int], missing: Sequence[int]) -> None:
        super().__init__(message, stored, unsure, missing)
        self.stored = stored
        self.unsure = unsure
        self.missing = missing

    def __str__(self) -> str:
        return str(self.args[0])


class JobError(CCQError):
    """A job that was waited for failed, or was cancelled. `job`: as it is now."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.job = job

    def __str__(self) -> str:
        why = "" if self.job.error is None else f": {self.job.error.code}: {self.job.error.detail}"
        return f"job {self.job.id} ({self.job.target}) {'was ' * (why == '')}{self.job.state}{why}"


class WaitTimeoutError(CCQError, TimeoutError):
    """A job took longer than somebody would wait; it goes on. `job`: as it was at last."""

    def __init__(self, message: str, job: Job) -> None:
        super().__init__(message, job)
        self.job = job

    def __str__(self) -> str:
        return str(self.args[0])


class VersionWarning(UserWarning):
    """Client and server are of different versions."""


class EmptyDatabaseWarning(UserWarning):
    """A search found nothing as the database that it was of, or the whole collection, has no items."""


class UnknownKeyWarning(UserWarning):
    """Nothing was found, or deleted, and a filter or `group_by` has a key that items do not have, but one like it."""


class Fault(NamedTuple):
    """One thing that is wrong with a request.

    Attributes
    ----------
    pointer:
        Where: ``#/items/3/id`` in the body, ``?limit`` a parameter, ``If-Match`` a header.
    detail:
        What was expected and what was received.
    """

    pointer: str
    detail: str


class ApiError(CCQError):
    """The service refused a request.

    Attributes
    ----------
    status:
        HTTP status.
    code:
        Which kind of problem it is: stable, for programs. ``unknown`` where what answered did not say.
    title:
        What the code means.
    detail:
        What was expected and what was received, for people, as the service said it; ``str(error)`` has it in the words
        of the client, with what to do.
    errors:
        Each fault with its place.
    request_id:
        By which the server's log knows the request.
    retry_after:
        After how many seconds the service wants to be asked again, if it said so.
    """

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        detail: str = "",
        errors: Sequence[Fault] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, code, title, detail, errors, request_id, retry_after)
        self.status = status
        self.code = code
        self.title = title
        self.detail = detail
        self.errors = tuple(errors)
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        said = "; ".join(filter(None, (_in_python(self.detail), _REMEDIES.get(self.code))))
        first = f"{self.title}: {said}" if said else self.title
        # The detail is the first fault; the others follow.
        return "\n".join([first, *(f"  {_in_python(fault.detail)}" for fault in self.errors[1:5])])


class RequestError(ApiError, ValueError):
    """The request is not as it should be; nothing was changed."""


class FeaturesError(RequestError):
    """Feature vectors do not fit the model of the collection, or cannot be made of a text or an image."""


class ModelFileError(RequestError):
    """A file is no usable model."""


class IdempotencyKeyReusedError(RequestError):
    """Another request had this idempotency key."""


class UnauthenticatedError(ApiError, PermissionError):
    """The request has no valid API key."""


class ForbiddenError(ApiError, PermissionError):
    """The API key does not allow this."""


class NotFoundError(ApiError, LookupError):
    """There is no such thing."""


class CollectionNotFoundError(NotFoundError):
    """There is no such collection."""


class AliasNotFoundError(NotFoundError):
    """There is no such alias."""


class JobNotFoundError(NotFoundError):
    """There is no such job, or it was forgotten."""


class ItemNotFoundError(NotFoundError):
    """There is no such item."""


class ModelNotFoundError(NotFoundError):
    """There is no such model."""


class SnapshotNotFoundError(NotFoundError):
    """There is no such snapshot."""


class ConflictError(ApiError):
    """The request does not fit what is there; nothing was changed."""


class VersionMismatchError(ConflictError):
    """An item is of another version than the write depends on; nothing was changed."""


class UnavailableError(ApiError):
    """The service cannot answer now; the same request may succeed later."""


class ServerError(ApiError):
    """The service failed, or has no room."""


CODES: dict[str, type[ApiError]] = {
    "bad_request": RequestError,
    "client_gone": RequestError,
    "empty_body": RequestError,
    "invalid_json": RequestError,
    "unauthenticated": UnauthenticatedError,
    "forbidden": ForbiddenError,
    "foreign_origin": ForbiddenError,
    "collection_not_found": CollectionNotFoundError,
    "item_not_found": ItemNotFoundError,
    "model_not_found": ModelNotFoundError,
    "snapshot_not_found": SnapshotNotFoundError,
    "alias_not_found": AliasNotFoundError,
    "encoder_not_found": NotFoundError,
    "job_not_found": JobNotFoundError,
    "route_not_found": NotFoundError,
    "method_not_allowed": RequestError,
    "collection_conflict": ConflictError,
    "model_in_use": ConflictError,
    "snapshot_in_progress": ConflictError,
    "alias_conflict": ConflictError,
    "reencode_in_progress": ConflictError,
    "jobs_full": ConflictError,
    "version_mismatch": VersionMismatchError,
    "body_too_large": RequestError,
    "unsupported_encoding": RequestError,
    "unsupported_media_type": RequestError,
    "duplicate_id": RequestError,
    "idempotency_key_reused": IdempotencyKeyReusedError,
    "invalid_features": FeaturesError,
    "invalid_input": RequestError,
    "invalid_request": RequestError,
    "model_corrupt": ModelFileError,
    "model_format": ModelFileError,
    "model_invalid": ModelFileError,
    "model_truncated": ModelFileError,
    "model_version": ModelFileError,
    "reply_too_large": RequestError,
    "too_many_values": RequestError,
    "cannot_encode": FeaturesError,
    "cannot_reencode": RequestError,
    "encoder_mismatch": RequestError,
    "unknown_database": RequestError,
    "unknown_modality": FeaturesError,
    "internal_error": ServerError,
    "storage_error": ServerError,
    "encoder_failed": ServerError,
    "job_failed": ServerError,
    "collection_failed": UnavailableError,
    "collection_loading": UnavailableError,
    "not_ready": UnavailableError,
    "overloaded": UnavailableError,
    "storage_busy": UnavailableError,
    "timeout": UnavailableError,
    "unavailable": UnavailableError,
    "memory": ServerError,
    "storage_full": ServerError,
}
"""The class of each code of the service."""

_KEY = "give a key by Client(api_key=...), or in the environment variable CCQ_API_KEY"
_ROOT = "expected the url of the client to be the root of a service, as in http://127.0.0.1:8000"
_REMEDIES = {
    "unauthenticated": f"{_KEY}; `ccq keys create`, on the machine of the service, makes one",
    "forbidden": f"{_KEY}, that allows it; client.caller() tells what yours allows",
    "collection_not_found": "client.collections.list() gives those that there are, "
    "client.collections.create(name, model) makes one, and client.collection(name) has the verbs of one",
    "model_not_found": "client.models.list() gives those that there are, client.models.upload(name, file) adds one",
    "alias_not_found": "client.aliases.list() gives those that there are, "
    "client.aliases.set(alias, collection) makes one",
    "snapshot_not_found": "client.snapshots.list() gives those that there are",
    "job_not_found": "client.jobs.list() gives those that there are",
    "encoder_not_found": "client.limits().encoders has those that there are; the operator sets them up (CCQ_ENCODERS)",
    "route_not_found": _ROOT,
    "method_not_allowed": _ROOT,
    "collection_loading": "ask again in a moment, or wait with client.wait_until_ready()",
    "not_ready": "client.wait_until_ready() waits for it",
    "idempotency_key_reused": "give each write an idempotency_key of its own, or none",
}
"""What to do, in the words of the client, by the code of a problem; what else a code needs, its detail says well."""

_HTTP = r"(?s); (?:GET|PUT|POST|DELETE) /.*$| \(Authorization: [^)]*\)"
"""What a detail says to those who speak HTTP."""

_ARGUMENTS = {
    "query_id": "by_id",
    "query_by.positive": "like",
    "query_by.negative": "unlike",
    "query_by": "like",
    "Idempotency-Key": "idempotency_key",
    "If-Match": "if_match",
}
_ARGUMENT = rf"^(?:{'|'.join(map(re.escape, _ARGUMENTS))})(?![\w-])"


def _in_python(detail: str) -> str:
    """What the service says without paths and headers of HTTP, and with the names of the client's arguments."""
    return re.sub(_ARGUMENT, lambda found: _ARGUMENTS[found[0]], re.sub(_HTTP, "", detail))


_STATUSES: dict[int, type[ApiError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    429: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def class_of(code: str, status: int) -> type[ApiError]:
    """The class of an error; by its status where the code is newer than this client."""
    by_status = _STATUSES.get(status, RequestError if status < 500 else ServerError)
    return CODES.get(code, by_status)
