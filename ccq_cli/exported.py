"""What `ccq export` writes, and `ccq index` reads: names of files, and the manifest that says what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError

from ccq_core.errors import InvalidInputError
from service.schemas.base import Schema
from service.schemas.names import Name

MANIFEST = "export.json"
Part = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
"""Name of a modality or a database, which is also a part of the name of a file."""

NO_FEATURES = "holds no features, since its collection kept none: import its codes, with --codes"


class Manifest(Schema):
    """What an export holds.

    Attributes
    ----------
    format:
        Version of the format.
    collection, model, model_checksum:
        The collection, its model, and the SHA-256 of the model's file, in hex.
    keep, indexes:
        How the collection keeps features, and its indexed payload keys.
    code_width:
        Bytes of a code row, M + 1.
    databases, features:
        Names of the databases, and of the modalities whose features are there.
    """

    format: Literal[1] = 1
    collection: Name
    model: Name
    model_checksum: str
    keep: str
    indexes: list[str]
    code_width: int = Field(ge=1)
    databases: list[Part] = Field(min_length=1)
    features: list[Part]

    @classmethod
    def read(cls, directory: Path) -> Self:
        """That of a directory; OSError, or InvalidInputError if there is none that this version can read."""
        file = directory / MANIFEST
        if not file.is_file():
            raise InvalidInputError(f"{directory}: expected a directory that `ccq export` wrote, with {MANIFEST} in it")
        return cls.parse(file.read_bytes(), str(file))

    @classmethod
    def parse(cls, data: bytes, place: str) -> Self:
        """A manifest from JSON; InvalidInputError names the `place` where it is none."""
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            found = error.errors()[0]
            raise InvalidInputError(f"{place}: {'.'.join(map(str, found['loc']))}: {found['msg']}") from None

    def dump(self) -> bytes:
        """As JSON."""
        return self.model_dump_json(indent=2).encode()

    def items_file(self, directory: Path) -> Path:
        """Ids and payloads, one object a line."""
        return directory / "items.jsonl"

    def present_file(self, directory: Path) -> Path:
        """Array (n, databases) bool: which items are in which databases."""
        return directory / "present.npy"

    def code_file(self, directory: Path, database: str) -> Path:
        """Array (n, M + 1) uint8; zeros for items that are not in the database."""
        return directory / f"codes.{database}.npy"

    def feature_file(self, directory: Path, modality: str) -> Path:
        """Array (n, P) float32; rows of NaN for items without the modality."""
        return directory / f"features.{modality}.npy"

    def model_file(self, directory: Path) -> Path:
        """The model."""
        return directory / f"{self.model}.ccq"
