"""The file of a snapshot: a plain tar of `ccq.sqlite`, the database, and `manifest.json`, which says what it is.

Any tar unpacks it, and `sha256sum ccq.sqlite` gives the `checksum` in the manifest. The manifest comes last, since it
has the checksum of what comes before it: a file that was cut short has none.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ccq_core import __version__
from service.errors import SnapshotFileError
from service.store.connection import SCHEMA_VERSION
from service.store.interface import Copied

FORMAT = 1
_DATABASE = "ccq.sqlite"
_MANIFEST = "manifest.json"
_LONGEST_MANIFEST = 64 << 20
_CHUNK_BYTES = 1 << 20


class Manifest(BaseModel):
    """What a snapshot is. `format` rises when older versions of this package could not read it."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: int
    package: str = Field(description="Version of the package that made it.")
    database: int = Field(description="Version of the database's schema.")
    created: AwareDatetime = Field(strict=False)
    size: int = Field(description="Bytes of the database.")
    checksum: str = Field(description="SHA-256 of the database's bytes, in hex.")
    collections: dict[str, int] = Field(description="Number of items of each collection.")


def write(file: Path, database: Path, copied: Copied, created: datetime, check: Callable[[], None]) -> Manifest:
    """Make a snapshot's file of a database that nobody uses; it is on disk on return.

    Parameters
    ----------
    file, database:
        The new file, and what goes into it.
    copied, created:
        What the database holds, and when that was (UTC).
    check:
        Called now and then; what it raises ends the work.
    """
    with file.open("wb") as out:
        with tarfile.open(fileobj=out, mode="w:") as tar, database.open("rb") as source:
            size, hashing = os.fstat(source.fileno()).st_size, _Hashing(source, check)
            tar.addfile(_member(_DATABASE, size, created), hashing)
            manifest = Manifest(
                format=FORMAT,
                package=__version__,
                database=copied.schema,
                created=created,
                size=size,
                checksum=hashing.hexdigest(),
                collections=dict(copied.collections),
            )
            text = manifest.model_dump_json(indent=2).encode() + b"\n"
            tar.addfile(_member(_MANIFEST, len(text), created), io.BytesIO(text))
        out.flush()
        os.fsync(out.fileno())
    return manifest


def read_manifest(file: Path) -> Manifest:
    """What a snapshot is; its database is passed over.

    Raises
    ------
    SnapshotFileError
        No snapshot, cut short, or of a newer version of this package.
    OSError
        The file cannot be read.
    """
    with _opened(file) as tar:
        _next(tar, file, _DATABASE)
        return _manifest(tar, file)


def extract(file: Path, database: Path) -> Manifest:
    """Write a snapshot's database to a new file; on return it is on disk, and is what the snapshot was made of.

    Raises what `verify` raises.
    """
    with database.open("wb") as out:
        manifest = verify(file, out.write)
        out.flush()
        os.fsync(out.fileno())
    return manifest


def verify(file: Path, take: Callable[[bytes], object] = lambda _: None) -> Manifest:
    """Read the whole of a snapshot; `take` gets its database part by part, of which nothing may be used before return.

    Raises what `read_manifest` raises, and SnapshotFileError for a database that is damaged.
    """
    with _opened(file) as tar:
        with _content(tar, _next(tar, file, _DATABASE)) as source:
            hashing = _Hashing(source, lambda: None)
            while chunk := hashing.read(_CHUNK_BYTES):
                take(chunk)
        manifest = _manifest(tar, file)
    if hashing.hexdigest() != manifest.checksum:
        raise SnapshotFileError(f"snapshot {file} is damaged: the database in it has another SHA-256 than it had")
    return manifest


class _Hashing:
    """A file that is being read, and its SHA-256 so far."""

    def __init__(self, file: IO[bytes], check: Callable[[], None]) -> None:
        self._file = file
        self._check = check
        self._sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        self._check()
        chunk = self._file.read(size)
        self._sha256.update(chunk)
        return chunk

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def _member(name: str, size: int, created: datetime) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, int(created.astimezone(UTC).timestamp()), 0o644
    return info


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    """A snapshot that is read; whatever is no tar, or ends too early, is told in one way."""
    try:
        with file.open("rb") as source, tarfile.open(fileobj=source, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError) as error:
        raise SnapshotFileError(f"snapshot {file} is damaged, or no snapshot: {error}") from None


def _next(tar: tarfile.TarFile, file: Path, name: str) -> tarfile.TarInfo:
    """The next member, which has to be this one. By no other name is anything ever read or written."""
    info = tar.next()
    if info is None or info.name != name or not info.isreg() or info.issparse():
        got = "nothing" if info is None else repr(info.name[:80])
        raise SnapshotFileError(f"snapshot {file} is damaged, or no snapshot: expected {name} in it, got {got}")
    return info


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(info)
    if content is None:  # only of what is no regular file
        raise tarfile.ReadError(f"{info.name} has no content")
    return content


def _manifest(tar: tarfile.TarFile, file: Path) -> Manifest:
    info = _next(tar, file, _MANIFEST)
    with _content(tar, info) as source:
        text = source.read(_LONGEST_MANIFEST)
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        raise SnapshotFileError(f"snapshot {file} is damaged: {_MANIFEST}: {found['msg']}") from None
    if manifest.format > FORMAT or manifest.database > SCHEMA_VERSION:
        raise SnapshotFileError(
            f"snapshot {file} was made by version {manifest.package} of ccq-search, which is newer: upgrade ccq-search"
        )
    return manifest
