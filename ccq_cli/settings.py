"""Data directories that verbs open as a server does, and the settings for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from ccq_cli.words import without_http
from service.errors import DirectoryInUseError, ServiceError
from service.runtime import Runtime
from service.settings import Settings
from service.store.reading import DATABASE_NAME


def read_settings(**flags: Any) -> Settings:
    """Settings from the environment, and from flags, which come first; UsageError says which are wrong."""
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise click.UsageError("\n".join(_words(found) for found in error.errors())) from None


_OTHERS = ("CCQ_MODEL", "CCQ_URL", "CCQ_API_KEY", "CCQ_SIMD_LEVEL", "CCQ_THREADS")
_OF_KUBERNETES = re.compile(r"CCQ_(\w+_)?(SERVICE_(HOST|PORT)|PORT_\d)")  # about a service that is called ccq


def unknown_variables(variables: Iterable[str]) -> list[str]:
    """Of environment variables those that look like settings and are none, each with what may have been meant."""
    known = [*(f"CCQ_{name.upper()}" for name in Settings.model_fields), *_OTHERS]
    found = []
    for name in sorted(variables):
        if name.upper().startswith("CCQ_") and name.upper() not in known and not _OF_KUBERNETES.match(name):
            near = get_close_matches(name.upper(), known, 1)
            found.append(f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else ""))
    return found


def is_data(directory: Path) -> bool:
    """Whether this is a data directory already: a verb that reads must not make one of any other."""
    return (directory / DATABASE_NAME).is_file()


@contextmanager
def open_runtime(data: Path, instead: str) -> Iterator[Runtime]:
    """A data directory as a server opens it; nothing is loaded. No server may use it meanwhile.

    Parameters
    ----------
    data:
        Made if it is missing.
    instead:
        How the caller can name a running service.

    Raises
    ------
    click.ClickException
        Another process uses the directory, or it cannot be used; and for whatever the service raises within.
    """
    try:
        try:
            runtime = Runtime.open(read_settings(data=data))
        except DirectoryInUseError as error:
            reason = f"{error}, or name the service that uses it by {instead}"
            raise click.ClickException(reason) from None
        try:
            yield runtime
        finally:
            runtime.close()
    except ServiceError as error:
        raise click.ClickException(without_http(str(error))) from None


def _words(found: Any) -> str:
    name = str(found["loc"][0])
    if found["type"] == "missing":
        return f"{name}: give --{name} or set CCQ_{name.upper()}"
    return f"{name}: {found['msg']}, got {found['input']!r} (CCQ_{name.upper()})"
