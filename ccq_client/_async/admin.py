"""The verbs on collections, models and snapshots."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ccq_client._async.connection import AsyncConnection
from ccq_client.calls import admin
from ccq_client.calls.admin import ModelFile
from ccq_client.calls.call import Call
from ccq_client.files import whole_file
from ccq_client.results import Collection, Model, Snapshot


class AsyncCollections:
    """All collections of a service."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        name: str,
        model: str,
        *,
        indexes: Sequence[str] | None = None,
        keep: Literal["none", "float16", "int8"] | None = None,
        encoders: Mapping[str, str] | None = None,
    ) -> Collection:
        """Create a collection. If it is there with the same model, nothing changes but its indexes and encoders.

        Parameters
        ----------
        name:
            Of the collection.
        model:
            Name of the model that encodes its items and queries.
        indexes:
            Keys of payloads whose values are indexed, for filters; None: as they are.
        keep:
            How to keep features, for `rescore`; it stays as it was at first.
        encoders:
            Names of the service's encoders by modality, for texts and images; None: as they are.
        """
        return await self._connection.send(admin.create_collection(name, model, indexes, keep, encoders))

    async def get(self, name: str) -> Collection:
        """One collection; `CollectionNotFoundError` if there is none."""
        return await self._connection.send(admin.get_collection(name))

    async def list(self) -> list[Collection]:
        """All that the API key is good for."""
        return await self._connection.send(admin.list_collections())

    async def delete(self, name: str) -> None:
        """Delete a collection with all its items."""
        await self._connection.send(admin.delete_collection(name))


class AsyncModels:
    """All models of a service."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def upload(self, name: str, file: ModelFile) -> Model:
        """Upload a model: the path of its file, the file's bytes, an open file, or a `ccq_core.CCQ`."""
        return await self._connection.send(admin.upload_model(name, file))

    async def get(self, name: str) -> Model:
        """One model; `ModelNotFoundError` if there is none."""
        return await self._connection.send(admin.get_model(name))

    async def list(self) -> list[Model]:
        """All that the API key is good for."""
        return await self._connection.send(admin.list_models())

    async def download(self, name: str, path: str | Path) -> None:
        """Write the file of a model to `path`, whole or not at all."""
        await _download(self._connection, admin.model_file(name), path)

    async def file(self, name: str) -> bytes:
        """The file of a model."""
        buffer = io.BytesIO()
        await self._connection.download(admin.model_file(name), buffer)
        return buffer.getvalue()

    async def delete(self, name: str) -> None:
        """Delete a model that no collection uses."""
        await self._connection.send(admin.delete_model(name))


class AsyncSnapshots:
    """All snapshots of a service. They need a key with the scope ``admin``, where there are keys."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(self) -> Snapshot:
        """Make a snapshot of everything that the service holds."""
        return await self._connection.send(admin.create_snapshot())

    async def list(self) -> list[Snapshot]:
        """All snapshots, the oldest first."""
        return await self._connection.send(admin.list_snapshots())

    async def download(self, name: str, path: str | Path) -> None:
        """Write the file of a snapshot to `path`, whole or not at all; ``ccq restore`` verifies and uses it."""
        await _download(self._connection, admin.snapshot_file(name), path)

    async def delete(self, name: str) -> None:
        """Delete a snapshot."""
        await self._connection.send(admin.delete_snapshot(name))


async def _download(connection: AsyncConnection, call: Call[None], path: str | Path) -> None:
    with whole_file(Path(path)) as file:
        await connection.download(call, file)
