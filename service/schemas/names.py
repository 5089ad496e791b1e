"""Names and ids: what they may look like, checked in one place."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BeforeValidator, StringConstraints, WithJsonSchema

from service.places import shorten

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
NAME_RULE = "a letter or digit, then up to 63 letters, digits, '.', '_' or '-'"
MAX_ID_BYTES = 512
MAX_IDEMPOTENCY_KEY = 255


def told(found: Any) -> str:
    """What one of Pydantic's errors says; of a name, what one looks like."""
    pattern = found.get("ctx", {}).get("pattern")
    return f"expected {NAME_RULE}" if pattern == NAME_PATTERN else str(found["msg"])


def check_id(value: Any) -> str:
    """An item's id as the string that it means.

    Raises
    ------
    ValueError
        Not a string of 1 to 512 bytes of UTF-8, and not an integer.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a string or an integer, got {shorten(value)}")  # noqa: TRY004 (pydantic takes ValueError)
    size = len(value.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= MAX_ID_BYTES:
        raise ValueError(f"expected 1 to {MAX_ID_BYTES} bytes of UTF-8, got {size}")
    return value


Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""Name of a collection or a model in a body."""

ItemId = Annotated[
    str,
    BeforeValidator(check_id),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}],
            "description": "A string of 1 to 512 bytes of UTF-8, compared byte by byte. An integer means its decimal "
            "string; beyond 2^53 send the string, JSON numbers are not safe there.",
        }
    ),
]
"""An item's id in a body."""

CollectionPath = Annotated[
    str, Path(alias="collection", pattern=NAME_PATTERN, description=f"Name of the collection: {NAME_RULE}.")
]
AliasPath = Annotated[str, Path(alias="alias", pattern=NAME_PATTERN, description=f"Name of the alias: {NAME_RULE}.")]
SnapshotPath = Annotated[
    str, Path(alias="snapshot", pattern=NAME_PATTERN, description="Name of the snapshot, as it is listed.")
]
JobPath = Annotated[str, Path(alias="job", pattern=NAME_PATTERN, description="Id of the job, as it is listed.")]
ModelPath = Annotated[str, Path(alias="model", pattern=NAME_PATTERN, description=f"Name of the model: {NAME_RULE}.")]
