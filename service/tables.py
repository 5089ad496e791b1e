"""What a collection holds in memory: code tables that grow with its writes, and views of them that searches read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from ccq_core import CCQ
from ccq_core.table import CodeTable, TableView
from service.errors import StorageError
from service.records import Bytes, Codes, Layout
from service.store.interface import CollectionRecord, Seqs

Progress = Callable[[int, int], None]
"""Called with the number of items that are done, and of all."""


@dataclass(frozen=True, eq=False)
class Coder:
    """What encodes the items and queries of a collection: its model of one generation.

    Attributes
    ----------
    record:
        The collection as it is while it has this model.
    layout:
        Of its code records.
    """

    record: CollectionRecord
    model: CCQ
    layout: Layout

    @classmethod
    def of(cls, record: CollectionRecord, model: CCQ) -> Self:
        """The coder of a collection that has this model."""
        return cls(record, model, Layout.of(model))


@dataclass(frozen=True)
class View:
    """What a collection holds at one version. Immutable.

    Attributes
    ----------
    version:
        The store's version that this is.
    items:
        Number of items.
    tables:
        Code rows by database; labels are the items' sequence numbers.
    coder:
        What they were encoded by, and all that is compared with them has to be.
    """

    version: int
    items: int
    tables: Mapping[str, TableView]
    coder: Coder

    @cached_property
    def rows(self) -> int:
        """Number of code rows in all databases."""
        return sum(table.rows for table in self.tables.values())

    @cached_property
    def code_bytes(self) -> int:
        """Bytes of these."""
        return sum(table.rows * table.width for table in self.tables.values())

    def codes(self, seq: int) -> dict[str, Bytes]:
        """An item's code row (M + 1,) uint8 in each of the databases that it is in, in their order."""
        found = {name: table.get(seq) for name, table in self.tables.items()}
        return {name: row for name, row in found.items() if row is not None}


class Tables:
    """The code tables of all databases of a collection, encoded by one model.

    Parameters
    ----------
    coder:
        What encodes the items.

    Attributes
    ----------
    read:
        How many records were loaded, of deleted items too.
    """

    def __init__(self, coder: Coder) -> None:
        self.coder = coder
        self.read = 0
        self._tables = {database: CodeTable(coder.layout.width) for database in coder.layout.databases}

    @classmethod
    def load(
        cls, coder: Coder, codes: Iterable[tuple[Seqs, bytes]], gone: Seqs, items: int, progress: Progress
    ) -> Self:
        """Tables of stored codes.

        Parameters
        ----------
        codes, gone:
            As `service.store.interface.Snapshot` gives them.
        items:
            How many there are, for `progress`.

        Raises
        ------
        StorageError
            What is stored is not what was written.
        """
        tables = cls(coder)
        for seqs, records in codes:
            tables.append_records(seqs, records)
            tables.read += len(seqs)
            progress(min(tables.read, items), items)
        tables.delete(gone)
        return tables

    def append(self, seqs: Seqs, codes: Codes) -> None:
        """Add items, behind all others."""
        for i, table in enumerate(self._tables.values()):
            table.append(*codes.of(i, seqs))

    def append_records(self, seqs: Seqs, records: bytes) -> None:
        """Add items by their joined code records; StorageError if these are none."""
        name = self.coder.record.name
        try:
            codes = self.coder.layout.unpack(records)
        except ValueError as error:
            raise StorageError(f"collection {name!r}: {error}") from error
        if len(codes) != len(seqs):
            raise StorageError(f"collection {name!r}: {len(seqs)} items with codes of another length than the model's")
        self.append(seqs, codes)

    def delete(self, seqs: Seqs) -> None:
        """Take items away; those that are not there are passed over."""
        for table in self._tables.values():
            table.delete(seqs)

    def view(self, version: int, items: int) -> View:
        """The tables as they are, which is the collection at this version, with so many items."""
        return View(version, items, {database: table.view() for database, table in self._tables.items()}, self.coder)
