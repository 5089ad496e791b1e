"""What people want to know of a model: a few words, where the model itself takes megabytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ccq_core import CCQ
from ccq_core.errors import CCQError
from service.errors import StorageError
from service.records import databases
from service.store.interface import ModelRecord, Store

_MOST_KNOWN = 256


@dataclass(frozen=True)
class Traits:
    """What a model is, without its arrays; fields as in `service.schemas.admin.ModelInfo`."""

    bits: int
    dim: int
    metric: str
    modalities: Mapping[str, Mapping[str, Any]]
    databases: tuple[str, ...]
    losses: tuple[float, ...]

    @classmethod
    def of(cls, model: CCQ) -> Self:
        """The traits of a model."""
        modalities = {name: {"dim": m.dim, "weight": m.weight} for name, m in model.modalities_.items()}
        dim = model.codebooks_.shape[-1]
        return cls(model.bits, dim, model.metric, modalities, databases(model), tuple(model.losses_))


def stored_model(name: str, file: bytes) -> CCQ:
    """A model from its file in the store; StorageError if that is no longer the one that was stored."""
    try:
        return CCQ.from_bytes(file)
    except CCQError as error:
        raise StorageError(f"model {name!r}: its stored file is damaged") from error


class KnownTraits:
    """The traits of the models of a store, which are not worked out anew each time.

    Kept by the checksum of the file that they were read from, so it does not matter what is replaced when.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Traits] = {}

    def add(self, record: ModelRecord, traits: Traits) -> None:
        """Keep these; the oldest go."""
        known = [*self._known.items(), (record.checksum, traits)]
        self._known = dict(known[-_MOST_KNOWN:])

    def find(self, record: ModelRecord) -> tuple[ModelRecord, Traits]:
        """A model, as it is now if it was replaced meanwhile; UnknownModelError if it was deleted."""
        traits = self._known.get(record.checksum)
        if traits is None:
            record, file = self._store.model_file(record.name)
            traits = Traits.of(stored_model(record.name, file))
            self.add(record, traits)
        return record, traits
