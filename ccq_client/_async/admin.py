"""The verbs on collections, aliases, models and snapshots."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from ccq_client._async.connection import AsyncConnection
from ccq_client.arrays import npz_file
from ccq_client.calls import admin, jobs
from ccq_client.calls.admin import ModelFile
from ccq_client.calls.call import Call
from ccq_client.errors import InputError
from ccq_client.files import whole_file
from ccq_client.jobs import Job
from ccq_client.options import TrainingOptions, check_options
from ccq_client.resources import Alias, Collection, LatentMap, Model, Snapshot, Usage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
            Keys of payloads whose values are indexed, for filters. All of them: one that is not named is dropped.
            None: as they are.
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

    async def usage(self, name: str) -> Usage:
        """How often each codeword of the collection's model is used: what the codes make of their bits."""
        return await self._connection.send(admin.usage(name))

    async def map(self, name: str, *, sample: int | None = None, label: str | None = None) -> LatentMap:
        """Where a sample of the items lies, in the two directions of the latent space in which it is spread most.

        Parameters
        ----------
        name:
            Of the collection.
        sample:
            Most points; by default as many as the service gives, 2,000.
        label:
            Key of payloads whose value is given with each point.
        """
        return await self._connection.send(admin.latent_map(name, sample, label))

    async def reencode(self, name: str, model: str, *, idempotency_key: str | None = None) -> Job:
        """Encode all items of a collection anew by another model, from the features that it keeps.

        A job, which is queued once; `jobs.wait` waits for it. Meanwhile the collection is used as it is, and then has
        the other model and its codes at once.
        """
        return await self._connection.send(jobs.reencode(name, model, idempotency_key))


class AsyncAliases:
    """All aliases of a service: other names of collections."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def set(self, alias: str, collection: str) -> Alias:
        """Let an alias lead to a collection, from now on and all at once, also if it led to another."""
        return await self._connection.send(admin.set_alias(alias, collection))

    async def get(self, alias: str) -> Alias:
        """One alias; `AliasNotFoundError` if there is none."""
        return await self._connection.send(admin.get_alias(alias))

    async def list(self) -> list[Alias]:
        """Those of all collections that the API key is good for."""
        return await self._connection.send(admin.list_aliases())

    async def delete(self, alias: str) -> None:
        """Delete an alias; its collection stays."""
        await self._connection.send(admin.delete_alias(alias))


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

    async def train(
        self,
        name: str,
        features: Mapping[str, ArrayLike] | str | Path | None = None,
        *,
        collection: str | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[TrainingOptions],
    ) -> Job:
        """Train a model in the service, and store it under this name: a job, which is queued once.

        `jobs.wait` waits for it. Exactly one of `features` and `collection` is given.

        Parameters
        ----------
        name:
            Of the model; that of one which no collection uses is replaced.
        features:
            (n, P) arrays by modality, as for `index`, which go there by way of a temporary file; or the path of an
            ``.npz`` file of such arrays.
        collection:
            A collection that keeps features: all of these.
        idempotency_key:
            A string that no other request for a job has: the same call later gives the job as it was queued.
        options:
            `TrainingOptions`: the settings of `ccq_core.CCQ`, and ``held_out``.

        Raises
        ------
        InputError
            An array cannot be sent; nothing was.
        ApiError, TransportError
            Nothing was queued, or that is not known (`in_doubt`).
        """
        given = check_options(options, TrainingOptions)
        if (features is None) == (collection is None):
            raise InputError("expected exactly one of features and collection")
        if collection is not None:
            return await self._connection.send(jobs.train_on_collection(name, collection, given, idempotency_key))
        with npz_file(features) as file:
            return await self._connection.send(jobs.train_on_file(name, file, given, idempotency_key))

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

    async def download(self, name: Snapshot | str, path: str | Path) -> None:
        """Write the file of a snapshot, or of that of a name, to `path`, whole or not at all.

        ``ccq restore`` verifies and uses it.
        """
        await _download(self._connection, admin.snapshot_file(_name(name)), path)

    async def delete(self, name: Snapshot | str) -> None:
        """Delete a snapshot, or that of a name."""
        await self._connection.send(admin.delete_snapshot(_name(name)))


def _name(snapshot: Snapshot | str) -> str:
    return snapshot.name if isinstance(snapshot, Snapshot) else snapshot


async def _download(connection: AsyncConnection, call: Call[None], path: str | Path) -> None:
    with whole_file(Path(path)) as file:
        await connection.download(call, file)
