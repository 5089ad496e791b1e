"""API keys, as the data directory has them: ``keys.json``, which holds their SHA-256 and never a key itself.

A key has 256 random bits, so its plain hash tells nothing of it, and a look-up by hash takes the same time whatever
was guessed. Keys start with ``ccq_``, by which those who look for leaked secrets can recognise them.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from ccq_core import modelfile
from service.disk import make_private
from service.errors import KeysFileError
from service.places import path as place_of
from service.schemas.names import Name

log = logging.getLogger(__name__)

FILE_NAME = "keys.json"
PREFIX = "ccq_"
CHECK_SECONDS = 1.0

Scope = Literal["search", "write", "admin"]


class Key(BaseModel):
    """What is known of a key.

    Attributes
    ----------
    hash:
        SHA-256 of the key, in hex.
    scopes:
        What it allows; `admin` includes the others.
    collections:
        The collections that it is good for; None: all, and what belongs to none.
    created:
        ISO 8601, UTC.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    collections: Annotated[tuple[Name, ...], Field(min_length=1)] | None
    created: str


class _Contents(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[Key, ...]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        for what in ("name", "hash"):
            if len({getattr(key, what) for key in self.keys}) < len(self.keys):
                raise ValueError(f"two keys have the same {what}")
        return self


def new(name: str, scopes: tuple[Scope, ...], collections: tuple[str, ...] | None) -> tuple[str, Key]:
    """A new key, and what is to be known of it.

    Raises
    ------
    ValidationError
        The name of the key, or of a collection, can be none.
    """
    secret = PREFIX + secrets.token_urlsafe(32)
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return secret, Key(name=name, hash=hashed(secret), scopes=scopes, collections=collections, created=created)


def hashed(secret: str) -> str:
    """The hash by which a key is looked up."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def read(file: Path) -> dict[str, Key]:
    """The keys in a file by name, none where there is no file; KeysFileError if it cannot be read, or is damaged."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise KeysFileError(f"{file}: {error.strerror}") from None
    try:
        return {key.name: key for key in _Contents.model_validate_json(data).keys}
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        place = place_of(found["loc"])
        reason = f"{place}: {found['msg']}" if place else found["msg"]
        raise KeysFileError(
            f"{file} is damaged ({reason}): restore it, or delete it and create the keys anew"
        ) from None


@contextmanager
def changed(directory: Path) -> Iterator[dict[str, Key]]:
    """The keys of a data directory by name, to be changed: they are written at the end. One change at a time.

    Raises
    ------
    KeysFileError
        From `read`.
    OSError
        The file, or the directory if there is none yet, cannot be written.
    """
    make_private(directory)
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        keys = read(directory / FILE_NAME)
        yield keys
        text = _Contents(keys=tuple(keys.values())).model_dump_json(indent=2) + "\n"
        modelfile.write(directory / FILE_NAME, text.encode(), mode=0o600)
    finally:
        os.close(handle)


class KeyRing:
    """The keys of a data directory. Follows the file: a change holds within about a second.

    Raises
    ------
    KeysFileError
        From `read`. Once there is a ring, a file that cannot be read, or is gone, is logged, and the keys stay as they
        were.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / FILE_NAME
        self._seen = self._state()
        self._keys = self._by_hash(read(self._file))
        self._looked = time.monotonic()
        self._used = bool(self._keys)

    @property
    def used(self) -> bool:
        """Whether there are keys, or were since the start: the last one's deletion opens the server to nobody."""
        self._follow()
        return self._used

    def find(self, secret: str) -> Key | None:
        """The key, if it is one."""
        self._follow()
        return self._keys.get(hashed(secret))

    def _follow(self) -> None:
        now = time.monotonic()
        if now < self._looked + CHECK_SECONDS:
            return
        self._looked = now
        state = self._state()
        if state == self._seen:
            return
        self._seen = state
        try:
            self._keys = self._by_hash(self._read_again())
        except KeysFileError as error:
            log.error("%s; the keys are still those of before", error)  # noqa: TRY400 (it says what a traceback would)
            return
        self._used = self._used or bool(self._keys)
        log.info("%s was read anew: %d keys", self._file, len(self._keys))

    def _read_again(self) -> dict[str, Key]:
        if self._used and not self._file.exists():  # nobody deletes it to let everyone in
            raise KeysFileError(f"{self._file} is gone")
        return read(self._file)

    def _state(self) -> tuple[int, int, int] | None:
        """What changes with the file; None where there is none to be seen."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    @staticmethod
    def _by_hash(keys: dict[str, Key]) -> dict[str, Key]:
        return {key.hash: key for key in keys.values()}
