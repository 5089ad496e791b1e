"""Features that a collection keeps beside the codes of its items: for results ranked anew, more exactly.

A record is a bit for each modality of the model, lowest first, padded to whole bytes, that says whether the item has
it; then for each that it has, in the order of the model, a scale (float32) and the numbers as parts of it: float16 of
numbers up to 1, or int8 of up to 127. All little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core import CCQ
from ccq_core.features import FeatureSet, Float32
from ccq_core.latents import Latents
from ccq_core.model import PAIR
from service.errors import StorageError

KINDS = ("float16", "int8")
_MOST = {"float16": np.float32(1), "int8": np.float32(127)}
_DTYPES: dict[str, np.dtype[Any]] = {"float16": np.dtype("<f2"), "int8": np.dtype("i1")}
_SCALE = np.dtype("<f4")


@dataclass(frozen=True)
class KeptLayout:
    """How the kept features of one collection are laid out.

    Attributes
    ----------
    kind:
        ``float16`` or ``int8``.
    dims:
        Dimension of each modality, in the order of the model.
    """

    kind: str
    dims: Mapping[str, int]

    def pack(self, features: FeatureSet) -> list[bytes]:
        """A record for each item."""
        present = np.zeros((features.n, len(self.dims)), dtype=bool)
        columns: dict[int, NDArray[np.uint8]] = {}
        for i, name in enumerate(self.dims):
            if name in features.arrays:
                present[:, i] = features.present[name]
                columns[i] = self._packed(features.arrays[name])
        masks = np.packbits(present, axis=1, bitorder="little")
        records = [b""] * features.n
        for kind in np.unique(present, axis=0):  # records with the same modalities are one array
            rows = np.flatnonzero((present == kind).all(axis=1))
            table = np.concatenate([masks[rows], *(columns[i][rows] for i in np.flatnonzero(kind).tolist())], axis=1)
            joined, size = table.tobytes(), table.shape[1]
            for at, row in enumerate(rows.tolist()):
                records[row] = joined[at * size : (at + 1) * size]
        return records

    def unpack(self, records: Sequence[bytes], wanted: Sequence[str] | None = None) -> FeatureSet:
        """The features of n items; rows of zeros for modalities that an item lacks.

        Parameters
        ----------
        wanted:
            Only these modalities; by default all.

        Raises
        ------
        StorageError
            A record has another length than it says.
        """
        n = len(records)
        width = -(-len(self.dims) // 8)
        asked = self.dims if wanted is None else {name: self.dims[name] for name in self.dims if name in wanted}
        arrays = {name: np.zeros((n, dim), dtype=np.float32) for name, dim in asked.items()}
        present = {name: np.zeros(n, dtype=bool) for name in asked}
        alike: dict[bytes, list[int]] = {}
        for row, record in enumerate(records):
            alike.setdefault(record[:width], []).append(row)
        for mask, rows in alike.items():  # records with the same modalities are one array
            bits = np.unpackbits(np.frombuffer(mask, np.uint8), count=len(self.dims), bitorder="little").tolist()
            names = [name for name, has in zip(self.dims, bits, strict=True) if has]
            size = width + sum(self._bytes(self.dims[name]) for name in names)
            joined = b"".join(records[row] for row in rows)
            if len(joined) != size * len(rows):
                raise StorageError("kept features have another length than the model's: index these items again")
            table = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), size)
            at = width
            for name in names:
                end = at + self._bytes(self.dims[name])
                if name in asked:
                    arrays[name][rows] = self._unpacked(table[:, at:end])
                    present[name][rows] = True
                at = end
        return FeatureSet(arrays, present, n)

    def latents(self, records: Sequence[bytes], database: str, model: CCQ) -> tuple[NDArray[np.bool_], Latents]:
        """Latent vectors of items in one database.

        Returns
        -------
        (n,) bool: which items have a modality that counts there; and the latent vectors of these, each the same
        whatever the others.

        Raises
        ------
        StorageError
            As `unpack`.
        """
        features = self.unpack(records, None if database == PAIR else [database])
        has = np.any(list(features.present.values()), axis=0)
        rows = np.flatnonzero(has)
        if not len(rows):
            return has, Latents.empty(0, model.codebooks_.shape[2])
        arrays = {
            name: np.where(features.present[name][rows, None], array[rows], np.float32(np.nan))
            for name, array in features.arrays.items()
        }
        # What was taken as it came may lie beyond what can be mapped once it is rounded.
        return has, Latents.of(model.project(arrays, alone=True, clip=True))

    def _bytes(self, dim: int) -> int:
        return _SCALE.itemsize + dim * _DTYPES[self.kind].itemsize

    def _packed(self, x: Float32) -> NDArray[np.uint8]:
        scale = np.abs(x).max(axis=1, initial=0.0).astype(np.float32)[:, None] / _MOST[self.kind]
        parts = x / np.where(scale > 0, scale, np.float32(1))
        if self.kind == "int8":
            parts = np.clip(np.rint(parts), -127, 127)  # where the scale is so small that it is rounded itself
        numbers = np.ascontiguousarray(parts.astype(_DTYPES[self.kind]))
        return np.concatenate([scale.astype(_SCALE).view(np.uint8), numbers.view(np.uint8)], axis=1)

    def _unpacked(self, data: NDArray[np.uint8]) -> Float32:
        scale = np.ascontiguousarray(data[:, : _SCALE.itemsize]).view(_SCALE)
        numbers = np.ascontiguousarray(data[:, _SCALE.itemsize :]).view(_DTYPES[self.kind])
        return np.asarray(numbers.astype(np.float32) * scale, dtype=np.float32)
