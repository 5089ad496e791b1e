"""Files that come with the program and are shown by browsers, each with its type and its hash."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

# As no system's own table has them: a script of another type would not be run.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Asset:
    """One file: its bytes, its media type, and an `ETag` that changes with it."""

    body: bytes
    media_type: str
    etag: str


Assets = Mapping[str, Asset]
"""Files by path."""


def read_assets(package: str, *steps: str, only: tuple[str, ...] | None = None) -> Assets:
    """The files in a folder of a package, and in the folders in it, by path.

    Parameters
    ----------
    package, steps:
        An installed package, and names that lead to the folder.
    only:
        Names of the files that are wanted; None: all.
    """
    return {name: _asset(name, file) for name, file in _files(files(package).joinpath(*steps), "", only)}


def _files(folder: Traversable, prefix: str, only: tuple[str, ...] | None) -> list[tuple[str, Traversable]]:
    found = []
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            found += _files(entry, f"{name}/", only)
        elif only is None or name in only:
            found.append((name, entry))
    return found


def _asset(name: str, file: Traversable) -> Asset:
    body = file.read_bytes()
    suffix = name[name.rfind(".") :]
    kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Asset(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
