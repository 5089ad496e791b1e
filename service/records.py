"""The codes of an item as bytes, for the store.

A record has the same length for all items of a collection: a bit for each database, lowest bit first, that says whether
the item is in it, padded to whole bytes; then for each database a code row of M + 1 bytes, zeros where the item is not
in it. Databases are in the order of `databases`. So a million records are one array, without a loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccq_core import CCQ
from ccq_core.model import PAIR

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


def databases(model: CCQ) -> tuple[str, ...]:
    """Names of the databases of a collection with this model: its modalities and, if it has several, `pair`."""
    return (*model.modalities, PAIR) if len(model.modalities) > 1 else model.modalities


@dataclass(frozen=True)
class Codes:
    """Codes of n items.

    Attributes
    ----------
    present:
        (n, databases) bool: which items are in which databases.
    rows:
        (n, databases, M + 1) uint8; zeros where an item is not in a database.
    """

    present: Bools
    rows: Bytes

    def __len__(self) -> int:
        return len(self.present)

    def of(self, database: int, seqs: NDArray[np.int64]) -> tuple[NDArray[np.int64], Bytes]:
        """Sequence numbers, of those of all items, and code rows of the items that are in a database."""
        present = self.present[:, database]
        if present.all():  # as it mostly is: nothing has to be copied
            return seqs, self.rows[:, database]
        return seqs[present], self.rows[present, database]


@dataclass(frozen=True)
class Layout:
    """How the records of one collection are laid out.

    Attributes
    ----------
    databases:
        Names, in the order of the records.
    width:
        Bytes per code row, M + 1.
    """

    databases: tuple[str, ...]
    width: int

    @classmethod
    def of(cls, model: CCQ) -> Layout:
        """The layout of collections with this model."""
        return cls(databases(model), model.code_width)

    @property
    def mask_bytes(self) -> int:
        """Bytes for the bits of presence."""
        return -(-len(self.databases) // 8)

    @property
    def size(self) -> int:
        """Bytes per record."""
        return self.mask_bytes + len(self.databases) * self.width

    def pack(self, codes: Codes) -> bytes:
        """The items' records, joined."""
        mask = np.packbits(codes.present, axis=1, bitorder="little")
        return np.concatenate([mask, codes.rows.reshape(len(codes), -1)], axis=1).tobytes()

    def unpack(self, records: bytes) -> Codes:
        """Codes of joined records.

        Raises
        ------
        ValueError
            The length is no multiple of a record's.
        """
        if len(records) % self.size:
            raise ValueError(f"code records: expected a multiple of {self.size} bytes, got {len(records)}")
        table = np.frombuffer(records, dtype=np.uint8).reshape(-1, self.size)
        bits = np.unpackbits(table[:, : self.mask_bytes], axis=1, count=len(self.databases), bitorder="little")
        return Codes(
            bits.astype(bool), table[:, self.mask_bytes :].reshape(len(table), len(self.databases), self.width)
        )
