"""Requests about collections, aliases, models and snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol
from urllib.parse import urlencode

from ccq_client.calls.call import Call, named, nothing, to_json
from ccq_client.calls.items import root
from ccq_client.errors import InputError
from ccq_client.resources import Alias, Collection, LatentMap, MapPoint, Modality, Model, Snapshot, Usage
from ccq_client.results import make, moment

FILE = "application/octet-stream"


class HasBytes(Protocol):
    """A model in memory, as `ccq_core.CCQ` is one."""

    def to_bytes(self) -> bytes:
        """Its file."""
        ...


ModelFile = str | Path | bytes | BinaryIO | HasBytes
"""A model: the path of its file, the file's bytes, an open file, or the model itself."""


def create_collection(
    name: str,
    model: str,
    indexes: Sequence[str] | None,
    keep: Literal["none", "float16", "int8"] | None,
    encoders: Mapping[str, str] | None,
) -> Call[Collection]:
    """Create a collection, or change its indexes and encoders."""
    given: dict[str, Any] = {"model": model, "indexes": indexes, "keep": keep, "encoders": encoders}
    body = to_json({key: value for key, value in given.items() if value is not None})
    return Call("PUT", root(name), _collection, body)


def get_collection(name: str) -> Call[Collection]:
    """One collection."""
    return Call("GET", root(name), _collection)


def list_collections() -> Call[list[Collection]]:
    """All collections."""
    return Call("GET", "/collections", lambda data: [_collection(entry) for entry in data["collections"]])


def usage(name: str) -> Call[Usage]:
    """How often codewords are used."""
    return Call("GET", f"{root(name)}/usage", _usage)


def latent_map(name: str, sample: int | None, label: str | None) -> Call[LatentMap]:
    """Where a sample of the items lies."""
    given = {key: value for key, value in (("sample", sample), ("label", label)) if value is not None}
    path = f"{root(name)}/map"
    return Call("GET", f"{path}?{urlencode(given)}" if given else path, _latent_map)


def delete_collection(name: str) -> Call[None]:
    """Delete a collection."""
    return Call("DELETE", root(name), nothing)


def upload_model(name: str, file: ModelFile) -> Call[Model]:
    """Upload a model."""
    return Call("PUT", f"/models/{named(name)}", _model, _file_bytes(file), FILE)


def get_model(name: str) -> Call[Model]:
    """One model."""
    return Call("GET", f"/models/{named(name)}", _model)


def model_file(name: str) -> Call[None]:
    """The file of a model."""
    return Call("GET", f"/models/{named(name)}?file=true", nothing)


def list_models() -> Call[list[Model]]:
    """All models."""
    return Call("GET", "/models", lambda data: [_model(entry) for entry in data["models"]])


def delete_model(name: str) -> Call[None]:
    """Delete a model."""
    return Call("DELETE", f"/models/{named(name)}", nothing)


def list_aliases() -> Call[list[Alias]]:
    """All aliases."""
    return Call("GET", "/aliases", lambda data: [make(Alias, entry) for entry in data["aliases"]])


def get_alias(alias: str) -> Call[Alias]:
    """One alias."""
    return Call("GET", f"/aliases/{named(alias)}", lambda data: make(Alias, data))


def set_alias(alias: str, collection: str) -> Call[Alias]:
    """Let an alias lead to a collection."""
    body = to_json({"collection": collection})
    return Call("PUT", f"/aliases/{named(alias)}", lambda data: make(Alias, data), body)


def delete_alias(alias: str) -> Call[None]:
    """Delete an alias."""
    return Call("DELETE", f"/aliases/{named(alias)}", nothing)


def create_snapshot() -> Call[Snapshot]:
    """Make a snapshot; sent twice it would make two."""
    return Call("POST", "/snapshots", _snapshot, repeatable=False)


def list_snapshots() -> Call[list[Snapshot]]:
    """All snapshots."""
    return Call("GET", "/snapshots", lambda data: [_snapshot(entry) for entry in data["snapshots"]])


def snapshot_file(name: str) -> Call[None]:
    """The file of a snapshot."""
    return Call("GET", f"/snapshots/{named(name)}", nothing)


def delete_snapshot(name: str) -> Call[None]:
    """Delete a snapshot."""
    return Call("DELETE", f"/snapshots/{named(name)}", nothing)


def _usage(data: Any) -> Usage:
    return make(Usage, data, codebooks=tuple(map(tuple, data["codebooks"])))


def _latent_map(data: Any) -> LatentMap:
    return make(LatentMap, data, points=tuple(make(MapPoint, entry) for entry in data["points"]))


def _collection(data: Any) -> Collection:
    return make(Collection, data)


def _model(data: Any) -> Model:
    modalities = {name: make(Modality, entry) for name, entry in data["modalities"].items()}
    return make(Model, data, created=moment(data["created"]), modalities=modalities)


def _snapshot(data: Any) -> Snapshot:
    return make(Snapshot, data, created=moment(data["created"]))


def _file_bytes(file: ModelFile) -> bytes:
    if isinstance(file, bytes):
        return file
    if isinstance(file, (str, Path)):
        return Path(file).read_bytes()
    if hasattr(file, "to_bytes"):
        return file.to_bytes()
    if hasattr(file, "read"):
        return file.read()
    raise InputError(f"expected a model, its file or the file's bytes, got {type(file).__name__}")
