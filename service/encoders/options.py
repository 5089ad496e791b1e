"""Options of an encoder in the file of encoders, checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from service.body import validated
from service.encoders.interface import Surroundings
from service.errors import InvalidRequestError
from service.schemas.base import Schema

O = TypeVar("O", bound="Options")  # noqa: E741 (a type variable)


class Options(Schema):
    """Base of the options of all kinds: no unknown names, and no value of another type."""


def read_options(given: Mapping[str, Any], kind: type[O]) -> O:
    """The options of an encoder; ValueError says what is wrong with them."""
    try:
        return validated(dict(given), kind)
    except InvalidRequestError as error:
        raise ValueError(error.detail) from None


def local_file(name: str, surroundings: Surroundings) -> Path:
    """A file that an option names; ValueError if there is none."""
    path = surroundings.folder / name
    if not path.is_file():
        raise ValueError(f"expected a file at {path}, there is none")
    return path
