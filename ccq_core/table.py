"""Rows of codes that grow, shrink and are searched at the same time.

Rows are named by labels, int64 numbers that only ever grow: the order of labels is the order of insertion, which
breaks ties. Appending never moves what is there, a deletion marks rows dead in a copy of their marks, so a `TableView`
taken at any moment stays as it was while the table goes on changing. One writer at a time; any number of readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccq_core.distances import DistanceTables
from ccq_core.errors import InvalidInputError
from ccq_core.quantizer import Codes
from ccq_core.scan import Keys, scan, top_k

Labels = NDArray[np.int64]
BLOCK_ROWS = 1 << 16
FIRST_BLOCK_ROWS = 256


@dataclass(frozen=True)
class _Block:
    """Up to BLOCK_ROWS rows. The arrays are shared between views; rows below `n` never change."""

    labels: Labels
    codes: Codes
    dead: NDArray[np.bool_] | None  # (BLOCK_ROWS,), replaced and never written to
    n: int


@dataclass(frozen=True)
class TableView:
    """The rows of a `CodeTable` at one moment. Immutable.

    Attributes
    ----------
    rows:
        Number of live rows.
    """

    blocks: tuple[_Block, ...]
    rows: int
    width: int

    def search(self, tables: DistanceTables, k: int, allowed: Labels | None = None) -> list[tuple[Labels, Keys]]:
        """The k best live rows of each query.

        Parameters
        ----------
        tables:
            Look-up tables of q queries.
        k:
            How many; fewer come back only where fewer rows qualify.
        allowed:
            Labels, strictly ascending; None allows every row. Only these rows are looked at.

        Returns
        -------
        For each query labels (<= k,) int64 and keys float64, best first, ties by label.
        """
        best: list[list[tuple[Labels, Keys]]] = [[] for _ in range(len(tables))]
        for labels, codes in self._live(allowed):
            for query, found in enumerate(best):
                keys = scan(tables, query, codes)
                top = top_k(keys, k)
                found.append((labels[top], keys[top]))
        return [_merge(found, k) for found in best]

    def get(self, label: int) -> Codes | None:
        """The (M + 1,) uint8 code row with this label, or None where no live row has it."""
        for _, codes in self._live(np.array([label], dtype=np.int64)):
            if len(codes):
                row: Codes = codes[0].copy()
                return row
        return None

    def arrays(self) -> tuple[Labels, Codes]:
        """Labels (rows,) and codes (rows, M + 1) of all live rows, in order of insertion; copies."""
        parts = list(self._live(None))
        if not parts:
            return np.empty(0, np.int64), np.empty((0, self.width), np.uint8)
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _live(self, allowed: Labels | None) -> Iterator[tuple[Labels, Codes]]:
        """Live rows block by block."""
        for block in self.blocks:
            labels, codes = block.labels[: block.n], block.codes[: block.n]
            if allowed is not None:
                lo, hi = np.searchsorted(allowed, [labels[0], labels[-1] + 1])
                wanted = allowed[lo:hi]
                at = np.searchsorted(labels, wanted)
                at = at[labels[np.minimum(at, block.n - 1)] == wanted]
                if block.dead is not None:
                    at = at[~block.dead[at]]
                if at.size:
                    yield labels[at], codes[at]
            elif block.dead is not None:
                alive = ~block.dead[: block.n]
                yield labels[alive], codes[alive]
            else:
                yield labels, codes


class CodeTable:
    """Code rows of one database: append, delete, and views to search.

    Parameters
    ----------
    width:
        Bytes per row, M + 1.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._blocks: list[_Block] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the rows take, spare room included."""
        return sum(b.labels.nbytes + b.codes.nbytes + (0 if b.dead is None else b.dead.nbytes) for b in self._blocks)

    def view(self) -> TableView:
        """The rows as they are now."""
        return TableView(tuple(self._blocks), self._rows, self.width)

    def append(self, labels: Labels, codes: Codes) -> None:
        """Add rows.

        Parameters
        ----------
        labels:
            (n,) int64, ascending and above every label so far.
        codes:
            (n, M + 1) uint8.

        Raises
        ------
        InvalidInputError
            Another shape or dtype, or labels that do not grow. Nothing is added.
        """
        if codes.dtype != np.uint8 or codes.shape != (len(labels), self.width):
            raise InvalidInputError(
                f"codes: expected shape ({len(labels)}, {self.width}) of uint8, got {codes.shape} of {codes.dtype}"
            )
        if len(labels) == 0:
            return
        last = self._blocks[-1].labels[self._blocks[-1].n - 1] if self._blocks else None
        if (last is not None and labels[0] <= last) or (np.diff(labels) <= 0).any():
            raise InvalidInputError("labels: expected ascending numbers above all that were added before")
        done = 0
        while done < len(labels):
            if not self._blocks or self._blocks[-1].n == len(self._blocks[-1].labels):
                self._blocks.append(self._new_block(len(labels) - done))
            block = self._blocks[-1]
            n = min(len(block.labels) - block.n, len(labels) - done)
            block.labels[block.n : block.n + n] = labels[done : done + n]
            block.codes[block.n : block.n + n] = codes[done : done + n]
            self._blocks[-1] = _Block(block.labels, block.codes, block.dead, block.n + n)
            done += n
        self._rows += len(labels)

    def delete(self, labels: Labels) -> int:
        """Delete rows by ascending label; labels that no live row has are passed over. Returns how many went."""
        gone = 0
        for i, block in enumerate(self._blocks):
            known = block.labels[: block.n]
            lo, hi = np.searchsorted(labels, [known[0], known[-1] + 1])
            wanted = labels[lo:hi]
            at = np.searchsorted(known, wanted)
            at = at[known[np.minimum(at, block.n - 1)] == wanted]
            if block.dead is not None:
                at = at[~block.dead[at]]
            if at.size:
                dead = np.zeros(len(block.labels), dtype=bool) if block.dead is None else block.dead.copy()
                dead[at] = True
                self._blocks[i] = _Block(block.labels, block.codes, dead, block.n)
                gone += int(at.size)
        self._rows -= gone
        if gone and self._dead_rows() > max(self._rows, BLOCK_ROWS):
            self._compact()
        return gone

    def _dead_rows(self) -> int:
        return sum(b.n for b in self._blocks) - self._rows

    def _compact(self) -> None:
        """Rewrite the live rows into new blocks; views go on with the old ones."""
        labels, codes = self.view().arrays()
        self._blocks, self._rows = [], 0
        self.append(labels, codes)

    def _new_block(self, wanted: int) -> _Block:
        # The first blocks are small, so that a thousand small collections do not cost a thousand full blocks.
        have = sum(b.n for b in self._blocks)
        size = min(BLOCK_ROWS, max(FIRST_BLOCK_ROWS, have, wanted))
        return _Block(np.empty(size, np.int64), np.empty((size, self.width), np.uint8), None, 0)


def _merge(found: list[tuple[Labels, Keys]], k: int) -> tuple[Labels, Keys]:
    if not found:
        return np.empty(0, np.int64), np.empty(0)
    labels = np.concatenate([part[0] for part in found])
    keys = np.concatenate([part[1] for part in found])
    top = top_k(keys, k)
    return labels[top], keys[top]
