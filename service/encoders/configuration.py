"""The operator's file of encoders, TOML: for each a table with its `kind`, and the options of that kind.

Only this file names paths and kinds; clients name encoders that are in it. They are made when the server starts, so
that what is wrong with one is told then.
"""

from __future__ import annotations

import logging
import re
import time
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from service.encoders import emoji, onnx_image, onnx_text
from service.encoders.interface import EncoderKind, Surroundings
from service.encoders.named import Encoders, NamedEncoder
from service.errors import SettingError
from service.schemas.names import NAME_PATTERN, NAME_RULE
from service.settings import Settings

log = logging.getLogger(__name__)

GROUP = "ccq_search.encoders"
"""Entry points of this group are further kinds: each an `EncoderKind`."""
KINDS: dict[str, EncoderKind] = {"emoji": emoji.make, "onnx-text": onnx_text.make, "onnx-image": onnx_image.make}
_ALWAYS: dict[str, dict[str, Any]] = {"emoji": {"kind": "emoji"}}


def open_encoders(settings: Settings) -> Encoders:
    """The encoders that the settings speak of, by name, and `emoji`, unless they give this name to another.

    Raises
    ------
    SettingError
        The file cannot be read, or an encoder in it cannot be used; the message is one line.
    """
    file = settings.encoders
    tables = _ALWAYS if file is None else {**_ALWAYS, **_read(file)}
    folder = Path() if file is None else file.parent
    surroundings = Surroundings(folder, settings.max_image_pixels)
    began = time.perf_counter()
    encoders = {name: _open(name, table, surroundings, settings) for name, table in sorted(tables.items())}
    if file is not None:
        log.info("encoders %s, %.1f s", ", ".join(encoders), time.perf_counter() - began)
    return encoders


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"encoders {file}: {error.strerror}") from None
    except ValueError as error:
        raise SettingError(f"encoders {file}: not valid TOML: {error}") from None


def _open(name: str, table: Any, surroundings: Surroundings, settings: Settings) -> NamedEncoder:
    place = f"encoder {name!r} of {settings.encoders}"
    if not re.fullmatch(NAME_PATTERN, name):
        raise SettingError(f"{place}: expected a name of {NAME_RULE}")
    if not isinstance(table, dict) or not isinstance(table.get("kind"), str):
        raise SettingError(f"{place}: expected a table with a kind, one of {', '.join(_known_kinds())}")
    options = {option: value for option, value in table.items() if option != "kind"}
    try:
        return NamedEncoder(name, _kind(table["kind"])(options, surroundings), settings)
    except Exception as error:  # of whatever kind: it is no fault of the server that it cannot start so
        raise SettingError(f"{place}: {' '.join(str(error).split()) or type(error).__name__}") from error


def _kind(name: str) -> EncoderKind:
    if name in KINDS:
        return KINDS[name]
    for entry in entry_points(group=GROUP, name=name):
        found: EncoderKind = entry.load()
        return found
    raise ValueError(f"kind: expected one of {', '.join(_known_kinds())}, got {name!r}")


def _known_kinds() -> list[str]:
    return sorted({*KINDS, *(entry.name for entry in entry_points(group=GROUP))})
