"""What the server and a search process tell each other, over a socket that nobody else has.

A message is pickled, and stands behind its length in eight bytes. Only this program writes to the socket, and no
message holds an object that came from a client: its bodies are bytes.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from service.store.interface import Change, CollectionRecord

MOST_IN_PASS = 32  # searches that a process answers together: more would not make each of them much cheaper
_LENGTH = struct.Struct("<Q")


class Reply(NamedTuple):
    """A reply to a search: JSON, and what was asked for (see `service.searching.Answer`)."""

    body: bytes
    limit: int
    queries: int


@dataclass(frozen=True)
class Load:
    """To a process: load a collection from the store, in the place of what it may have of it.

    `ticket`: tells this order from others, for `Loaded`.
    """

    ticket: int
    record: CollectionRecord


@dataclass(frozen=True)
class Drop:
    """To a process: let go of a collection, by its number."""

    number: int


@dataclass(frozen=True)
class Changed:
    """To a process: a collection was written to. `records`: the packed codes of what was added."""

    number: int
    change: Change
    records: bytes | None


@dataclass(frozen=True)
class Ask:
    """To a process: some searches of one collection.

    `request_ids`: theirs, for the log. `most`: how many searches to answer together, with those of other batches.
    """

    batch: int
    number: int
    bodies: list[bytes]
    request_ids: str
    most: int


@dataclass(frozen=True)
class Ping:
    """To a process: say something."""


@dataclass(frozen=True)
class Pong:
    """From a process: it listens."""


@dataclass(frozen=True)
class Loaded:
    """From a process: a collection is loaded, or could not be."""

    ticket: int
    loaded: bool


@dataclass(frozen=True)
class Answers:
    """From a process: replies to searches, in their order; None: the server has to look at it.

    `rows`, `scanned`: code rows and bytes of codes that it went through.
    """

    batch: int
    replies: list[Reply | None]
    rows: int
    scanned: int


ToProcess = Load | Drop | Changed | Ask | Ping
FromProcess = Loaded | Answers | Pong


def pack(message: object) -> bytes:
    """A message as it goes over the socket."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


def read(stream: IO[bytes]) -> Any:
    """The next message; EOFError if there is none."""
    (size,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return pickle.loads(_exactly(stream, size))  # noqa: S301 (from this program)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


class Unpacker:
    """Takes messages out of bytes as these come."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The messages that are complete now."""
        self._held += data
        start = 0
        while len(self._held) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._held, start)
            end = start + _LENGTH.size + size
            if len(self._held) < end:
                break
            yield pickle.loads(memoryview(self._held)[start + _LENGTH.size : end])  # noqa: S301 (from this program)
            start = end
        del self._held[:start]
