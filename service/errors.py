"""Everything that the service raises on purpose. What a client gets to see of each is in `service.problems`.

::

    ServiceError
    ├── StartError                          the service cannot start; never reaches a client
    │   ├── DirectoryInUseError             another process serves this data directory
    │   ├── DatabaseError                   the database file is damaged, foreign, or of a newer version
    │   ├── AddressError                    the address cannot be listened on
    │   ├── DefaultModelError               --model and the default collection do not fit together
    │   ├── KeysFileError                   the file of API keys cannot be read
    │   ├── SnapshotFileError               a file is no snapshot that can be restored, or not here
    │   ├── OpenAddressError                others can reach the address, and there is no API key
    │   └── SettingError                    a setting needs a file, a package or another setting that is not there
    ├── RequestError                        the request cannot be served as it is; nothing was changed
    │   ├── UnauthenticatedError            no API key, or none that is known
    │   ├── ForbiddenError                  the API key does not allow this
    │   ├── ClientGoneError                 the client went away before its request was complete
    │   ├── EmptyBodyError                  a body was expected
    │   ├── InvalidJsonError                the body is not JSON
    │   ├── MediaTypeError                  the body is not declared to be JSON
    │   ├── EncodingError                   the body is compressed
    │   ├── BodyTooLargeError               the body is longer than the settings allow
    │   ├── ReplyTooLargeError              the reply would be longer than the settings allow
    │   ├── TooManyValuesError              more distinct values than the settings allow to count
    │   ├── InvalidRequestError             a part of the request is missing, unknown or of a wrong kind
    │   ├── CoreInputError                  the core refuses a part of the request, `cause` says why
    │   ├── DuplicateIdError                the same id twice in one request
    │   ├── UnknownDatabaseError            the model has no such database
    │   ├── UnknownNameError (KeyError)     nothing has this name
    │   │   ├── UnknownAliasError
    │   │   ├── UnknownCollectionError
    │   │   └── UnknownModelError
    │   ├── UnknownItemError (KeyError)
    │   ├── CollectionConflictError         the collection exists, with another model
    │   ├── ModelInUseError                 a collection uses the model, so it stays
    │   ├── UnknownEncoderError (KeyError)  the server has no such encoder
    │   ├── EncoderMismatchError            an encoder does not fit the model
    │   ├── UnencodableError                an encoder cannot encode a value
    │   ├── AliasConflictError              a name would be an alias and a collection, or an alias would lead nowhere
    │   ├── UnknownSnapshotError (KeyError)
    │   ├── ReencodingError                 the collection is being encoded with another model already
    │   ├── ReencodeError                   the collection cannot be encoded with that model
    │   ├── SnapshotInProgressError         another snapshot is being made
    │   ├── UnknownJobError (KeyError)
    │   ├── JobsFullError                   as many jobs wait as may
    │   ├── VersionMismatchError            an item is of another version than the request says
    │   └── KeyReusedError                  another request had the same Idempotency-Key
    └── UnavailableError                    the request may be fine, the service is not
        ├── CollectionLoadingError          the collection is being loaded; try again
        ├── CollectionFailedError           the collection could not be loaded; see the log
        ├── NotReadyError                   not every collection is loaded
        ├── OverloadedError                 too many requests are in progress; try again
        ├── RequestTimeoutError             the request took too long
        ├── MemoryLimitError                the bodies in progress take too much memory; try again
        │   └── TrainingMemoryError         a training would take more than there is
        ├── EncoderFailedError              an encoder failed, or is not there any more
        ├── StorageFullError                no room left on the disk
        ├── StorageBusyError                another program holds a lock on the database
        ├── StorageError                    the database failed
        └── JobFailedError                  a job ended without a result; never the answer to a request
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from ccq_core.errors import CCQError
from service.places import Location, instead, path, pointer, shorten


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request.

    Attributes
    ----------
    pointer:
        ``#/items/3/id``: a JSON pointer (RFC 6901) into the body; ``#/text/5``: row 5 of array `text` of a file of
        arrays; ``?limit``: a query parameter; ``{id}``: a part of the path; ``If-Match``: a header;
        ``/collections/default``: a resource.
    detail:
        What was received and what was expected.
    """

    pointer: str
    detail: str

    @classmethod
    def at(cls, location: Location, reason: str) -> Fault:
        """A fault at a place in the body; the detail starts with the place as people write it."""
        place = path(location)
        return cls(pointer(location), f"{place}: {reason}" if place else reason)


class WouldTakeLongError(Exception):
    """Something cannot be done at once. Never leaves the service: it is then done by a thread that has time."""


class ServiceError(Exception):
    """Base of all errors that the service raises on purpose."""

    def __init__(self, detail: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.faults = tuple(faults)

    def __str__(self) -> str:  # KeyError would show the repr of its argument
        return self.detail


class StartError(ServiceError):
    """The service cannot start. The message is one line for the terminal."""


class DirectoryInUseError(StartError):
    """Another process serves this data directory."""


class DatabaseError(StartError):
    """The database file is damaged, of another program, or of a newer version of this package."""


class AddressError(StartError):
    """The address cannot be listened on: in use, not allowed, or not of this machine."""


class DefaultModelError(StartError):
    """The model file that was given and the default collection do not fit together."""


class KeysFileError(StartError):
    """The file of API keys cannot be read, or is damaged."""


class SnapshotFileError(StartError):
    """A file is no snapshot, damaged or of a newer version of this package; or where it is to go is a database."""


class OpenAddressError(StartError):
    """Other machines can reach the address, and nobody would need an API key."""


class SettingError(StartError):
    """A setting names a file that cannot be used, or needs another setting or a package that is not there."""


class RequestError(ServiceError):
    """The request cannot be served as it is. Nothing was changed."""

    @classmethod
    def from_faults(cls, faults: Sequence[Fault]) -> Self:
        """An error whose detail is the first fault's."""
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return cls(faults[0].detail + more, faults)


class UnauthenticatedError(RequestError):
    """The request has no API key and no token, or none that is valid."""


class ForbiddenError(RequestError):
    """The API key or token is valid, but allows neither this nor, maybe, this collection."""


class ForeignOriginError(RequestError):
    """The request may be of a web page elsewhere, and the server asks for no API key that would tell."""


class ClientGoneError(RequestError):
    """The client went away before its request was complete."""


class EmptyBodyError(RequestError):
    """A body was expected, none came."""


class InvalidJsonError(RequestError):
    """The body is not JSON."""


class MediaTypeError(RequestError):
    """The Content-Type is not JSON. Required, so that no web page can make a browser post here unasked."""


class EncodingError(RequestError):
    """The body has a Content-Encoding."""


class ReplyTooLargeError(RequestError):
    """The reply would be longer than the settings allow."""


class TooManyValuesError(RequestError):
    """There are more distinct values than the settings allow to count."""


class BodyTooLargeError(RequestError):
    """The body is longer than the settings allow."""


class InvalidRequestError(RequestError):
    """A part of the request is missing, unknown or of a wrong kind."""


class CoreInputError(RequestError):
    """The core refuses a part of the request.

    Attributes
    ----------
    cause:
        The core's error. Its class decides the problem's code.
    """

    def __init__(self, cause: CCQError, fault: Fault) -> None:
        super().__init__(fault.detail, [fault])
        self.cause = cause


class DuplicateIdError(RequestError):
    """The same id twice in one request."""


class UnknownDatabaseError(RequestError):
    """The model has no such database."""


class UnknownNameError(RequestError, KeyError):
    """Nothing has this name, but others may.

    Attributes
    ----------
    discreet:
        The detail without the names that there are, for those who may not see them all.
    """

    def __init__(self, what: str, name: str, there: Iterable[str], remedy: str) -> None:
        super().__init__(f"no {what} {name!r}{instead(name, there)}; {remedy}")
        self.discreet = f"no {what} {name!r}; {remedy}"


class UnknownCollectionError(UnknownNameError):
    """There is no collection of this name, but those that are `there`."""

    def __init__(self, name: str, there: Iterable[str] = ()) -> None:
        super().__init__("collection", name, there, f"PUT /collections/{name} creates it")


class UnknownModelError(UnknownNameError):
    """There is no model of this name, but those that are `there`."""

    def __init__(self, name: str, there: Iterable[str] = ()) -> None:
        super().__init__("model", name, there, f"PUT /models/{name} uploads it")


class UnknownItemError(RequestError, KeyError):
    """The collection has no item of this id."""

    def __init__(self, item_id: str, collection: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(f"no item {item_id!r} in collection {collection!r}", faults)


class CollectionConflictError(RequestError):
    """The collection exists, with another model."""


class ModelInUseError(RequestError):
    """A collection uses the model, so it can be neither deleted nor replaced."""


class UnknownAliasError(UnknownNameError):
    """There is no alias of this name, but those that are `there`."""

    def __init__(self, name: str, there: Iterable[str] = ()) -> None:
        super().__init__("alias", name, there, f"PUT /aliases/{name} creates it")


class AliasConflictError(RequestError):
    """A name would be that of an alias and of a collection, or an alias would lead to no collection."""


class UnknownEncoderError(RequestError, KeyError):
    """The server has no encoder of this name."""


class EncoderMismatchError(RequestError):
    """An encoder makes features of another dimension than the model takes, or is for no modality of it."""


class UnencodableError(RequestError):
    """A value cannot be encoded: too long, no image, without a known word, or not what the encoder takes."""


class UnknownSnapshotError(RequestError, KeyError):
    """There is no snapshot of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no snapshot {shorten(name)}; GET /snapshots lists those that there are")


class SnapshotInProgressError(RequestError):
    """Another snapshot is being made."""


class UnknownJobError(RequestError, KeyError):
    """There is no job of this id."""

    def __init__(self, job: str) -> None:
        super().__init__(f"no job {shorten(job)}; GET /jobs lists those that there are")


class JobsFullError(RequestError):
    """As many jobs as the settings allow are queued or running."""


class ReencodingError(RequestError):
    """The collection is being encoded with another model already."""


class ReencodeError(RequestError):
    """The collection cannot be encoded with that model: it keeps no features, or the model needs others."""


class VersionMismatchError(RequestError):
    """An item is of another version than the request says.

    Attributes
    ----------
    item_id, current:
        The item, and its version; 0 if there is none of this id.
    """

    def __init__(self, item_id: str, expected: int, current: int, faults: Sequence[Fault] = ()) -> None:
        there_is = f"its version is {current}" if current else "there is no such item (version 0)"
        super().__init__(f"item {shorten(item_id)}: expected version {expected}, but {there_is}", faults)
        self.item_id = item_id
        self.current = current


class KeyReusedError(RequestError):
    """Another request had the same Idempotency-Key within the time that replies are kept."""


class UnavailableError(ServiceError):
    """The request may be fine, the service is not.

    Attributes
    ----------
    retry_after:
        Seconds after which trying again makes sense, or None.
    """

    retry_after: int | None = None


class CollectionLoadingError(UnavailableError):
    """The collection is being loaded from the store."""

    retry_after = 1


class CollectionFailedError(UnavailableError):
    """The collection could not be loaded; the log says why."""


class NotReadyError(UnavailableError):
    """Not every collection is loaded."""

    retry_after = 1


class OverloadedError(UnavailableError):
    """As many requests as the settings allow are in progress, or wait. Nothing was done."""

    retry_after = 1


class RequestTimeoutError(UnavailableError):
    """The request took longer than the settings allow. A write may still be carried out."""


class MemoryLimitError(UnavailableError):
    """With this body, those in progress would take more memory than the settings allow. Nothing was changed."""

    retry_after: int | None = 1


class TrainingMemoryError(MemoryLimitError):
    """A training would take more memory than the settings allow, or than the machine has. Nothing was changed."""

    retry_after = None


class EncoderFailedError(UnavailableError):
    """An encoder failed, or the server does not have it any more. Nothing was changed."""


class StorageFullError(UnavailableError):
    """No room left on the disk. Nothing was changed."""


class StorageBusyError(UnavailableError):
    """Another program holds a lock on the database. Nothing was changed."""

    retry_after = 1


class StorageError(UnavailableError):
    """The database failed. The log says how."""


class JobFailedError(UnavailableError):
    """A job ended without a result: it was killed, or the server died under it too often."""
