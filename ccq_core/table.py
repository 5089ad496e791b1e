"""Rows of codes that grow, shrink and are searched at the same time.

Rows are named by labels, int64 numbers that only ever grow: the order of labels is the order of insertion, which
breaks ties. Appending never moves what is there, a deletion marks rows dead in a copy of their marks, so a `TableView`
taken at any moment stays as it was while the table goes on changing. One writer at a time; any number of readers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccq_core.distances import DistanceTables
from ccq_core.errors import InvalidInputError
from ccq_core.memory import aligned_empty
from ccq_core.quantizer import Codes, K
from ccq_core.scan import GROUP, Keys, Labels, Rows, Segment, rows_of, search

BLOCK_ROWS = 1 << 16
SLAB_ROWS = 1 << 22
FIRST_BLOCK_ROWS = 256
_OFFSET_LIMIT = 1 << 32
_FEW_SHARE = 32  # up to one row in so many is looked up by itself


@dataclass(frozen=True)
class _Block:
    """Up to BLOCK_ROWS rows. The arrays are shared between views; rows below `n` never change.

    Attributes
    ----------
    codes:
        (groups, width, 64) uint8, as in `Segment`.
    first:
        Label of the first row.
    offsets:
        Labels minus `first`, (64 groups,) uint32; None where labels are consecutive, which costs nothing.
    dead:
        (64 groups,) bool, replaced and never written to; None where all rows live.
    mask:
        The live rows as bits, as in `Segment`.
    """

    codes: NDArray[np.uint8]
    first: int
    offsets: NDArray[np.uint32] | None
    dead: NDArray[np.bool_] | None
    mask: NDArray[np.uint64] | None
    n: int

    @property
    def room(self) -> int:
        return len(self.codes) * GROUP - self.n

    @property
    def last(self) -> int:
        return self.first + (self.n - 1 if self.offsets is None else int(self.offsets[self.n - 1]))

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.codes, self.offsets, self.dead, self.mask) if a is not None)

    def find(self, labels: Labels) -> NDArray[np.int64]:
        """Live rows among ascending labels."""
        lo, hi = np.searchsorted(labels, [self.first, self.last + 1])
        wanted = labels[lo:hi] - self.first
        rows = wanted
        if self.offsets is not None:
            rows = np.searchsorted(self.offsets[: self.n], wanted)
            rows = rows[self.offsets[rows] == wanted]
        return rows if self.dead is None else rows[~self.dead[rows]]

    def segment(self, rows: NDArray[np.int64] | None = None) -> Segment:
        """All live rows, or only some of them, to be searched."""
        if rows is None:
            return Segment(self.codes, self.n, self.mask, self.first, self.offsets)
        selected = np.zeros(len(self.codes) * GROUP, dtype=bool)
        selected[rows] = True
        return Segment(self.codes, self.n, _bits(selected), self.first, self.offsets)


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
    used: NDArray[np.bool_]

    def search(self, tables: DistanceTables, k: int, allowed: Labels | None = None) -> list[tuple[Labels, Keys]]:
        """The k best live rows of each query.

        Parameters
        ----------
        tables:
            Look-up tables of q queries.
        k:
            How many; fewer come back only where fewer rows qualify.
        allowed:
            Labels, int64, strictly ascending; None allows every row. Groups of rows without any are passed over.

        Returns
        -------
        For each query labels (<= k,) int64 and keys float64, best first, ties by label.
        """
        if allowed is None:
            return search(self.everything, tables, k)
        if len(allowed) * _FEW_SHARE <= self.rows:
            return search(self.everything, tables, k, np.ascontiguousarray(allowed, dtype=np.int64))
        chosen = self._find(allowed)
        segments = [block.segment(rows) for block, rows in chosen]
        live = sum(int(rows.size) for _, rows in chosen)
        return search(Rows(segments, live, self.width, self.used), tables, k)

    def _find(self, labels: Labels) -> list[tuple[_Block, NDArray[np.int64]]]:
        """Live rows with some of these ascending labels, by block."""
        bounds = np.searchsorted(labels, self._firsts)
        some = np.flatnonzero(np.diff(bounds, append=len(labels)))
        found = [(self.blocks[at], self.blocks[at].find(labels[bounds[at] :])) for at in some.tolist()]
        return [(block, rows) for block, rows in found if rows.size]

    @cached_property
    def _firsts(self) -> Labels:
        return np.array([block.first for block in self.blocks], dtype=np.int64)

    @cached_property
    def everything(self) -> Rows:
        """All live rows, to be searched."""
        return Rows([block.segment() for block in self.blocks], self.rows, self.width, self.used)

    def get(self, label: int) -> Codes | None:
        """The (M + 1,) uint8 code row with this label, or None where no live row has it."""
        at = bisect_right(self.blocks, label, key=lambda block: block.first) - 1
        for row in self.blocks[at].find(np.array([label], dtype=np.int64)).tolist() if at >= 0 else ():
            code: Codes = self.blocks[at].codes[row // GROUP, :, row % GROUP].copy()
            return code
        return None

    def take(self, labels: Labels) -> tuple[NDArray[np.bool_], Codes]:
        """The live rows with some strictly ascending labels (n,) int64.

        Returns
        -------
        (n,) bool, which of the labels have a row; and (n, M + 1) uint8, their code rows, zeros where there is none.
        """
        present = np.zeros(len(labels), dtype=bool)
        codes = np.zeros((len(labels), self.width), dtype=np.uint8)
        for block, rows in self._find(labels):
            at = np.searchsorted(labels, block.segment().labels(rows))
            present[at] = True
            codes[at] = block.codes[rows // GROUP, :, rows % GROUP]
        return present, codes

    def counts(self) -> Iterator[NDArray[np.int64]]:
        """How many live rows have each byte in each place, (width, 256), part by part: the sum is that of all rows."""
        for block in self.blocks:
            counts = np.empty((self.width, K), np.int64)
            dead = None if block.dead is None else block.dead[: block.n]
            for place in range(self.width):
                plane = block.codes[:, place].reshape(-1)[: block.n]
                counts[place] = np.bincount(plane if dead is None else plane[~dead], minlength=K)
            yield counts

    def sample(self, most: int) -> tuple[Labels, Codes]:
        """Labels (n,) and codes (n, width) of at most so many live rows, evenly spread over all; copies."""
        places = np.unique(np.linspace(0, self.rows - 1, min(most, self.rows)).round().astype(np.int64))
        labels, codes = [np.empty(0, np.int64)], [np.empty((0, self.width), np.uint8)]
        before = 0
        for block in self.blocks:
            alive = None if block.dead is None else np.flatnonzero(~block.dead[: block.n])
            behind = before + (block.n if alive is None else len(alive))
            lo, hi = np.searchsorted(places, [before, behind])
            rows = places[lo:hi] - before
            rows = rows if alive is None else alive[rows]
            labels.append(block.segment().labels(rows))
            codes.append(block.codes[rows // GROUP, :, rows % GROUP])
            before = behind
        return np.concatenate(labels), np.concatenate(codes)

    def arrays(self) -> tuple[Labels, Codes]:
        """Labels (rows,) and codes (rows, M + 1) of all live rows, in order of insertion; copies."""
        labels, codes = [np.empty(0, np.int64)], [np.empty((0, self.width), np.uint8)]
        for block in self.blocks:
            alive = np.arange(block.n) if block.dead is None else np.flatnonzero(~block.dead[: block.n])
            labels.append(block.segment().labels(alive))
            codes.append(rows_of(block.codes, block.n)[alive])
        return np.concatenate(labels), np.concatenate(codes)


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
        # Blocks are cut from larger slabs, for which the system gives large pages: from memory beyond the caches these
        # are read almost twice as fast.
        self._slab = self._no_groups()
        # Bytes that ever occurred in each plane. It only grows, so views may share it.
        self._used = np.zeros((width, K), dtype=bool)

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the rows take, spare room included."""
        return sum(block.nbytes for block in self._blocks) + self._slab.nbytes

    def view(self) -> TableView:
        """The rows as they are now."""
        return TableView(tuple(self._blocks), self._rows, self.width, self._used)

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
        if (self._blocks and labels[0] <= self._blocks[-1].last) or (np.diff(labels) <= 0).any():
            raise InvalidInputError("labels: expected ascending numbers above all that were added before")
        for plane in np.flatnonzero(~self._used.all(axis=1)):
            self._used[plane, codes[:, plane]] = True
        done = 0
        while done < len(labels):
            block = self._blocks[-1] if self._blocks else None
            if block is None or block.room == 0 or int(labels[done]) - block.first >= _OFFSET_LIMIT:
                block = self._new_block(int(labels[done]), len(labels) - done)
                self._blocks.append(block)
            n = min(block.room, int(np.searchsorted(labels[done:], block.first + _OFFSET_LIMIT)))
            self._blocks[-1] = _extended(block, labels[done : done + n], codes[done : done + n])
            done += n
        self._rows += len(labels)

    def delete(self, labels: Labels) -> int:
        """Delete rows by ascending label; labels that no live row has are passed over. Returns how many went."""
        gone = 0
        for i, block in enumerate(self._blocks):
            rows = block.find(labels)
            if rows.size:
                dead = np.zeros(len(block.codes) * GROUP, dtype=bool) if block.dead is None else block.dead.copy()
                dead[rows] = True
                self._blocks[i] = replace(block, dead=dead, mask=_bits(~dead))
                gone += int(rows.size)
        self._rows -= gone
        if gone and sum(block.n for block in self._blocks) - self._rows > max(self._rows, BLOCK_ROWS):
            self._compact()
        return gone

    def _compact(self) -> None:
        """Rewrite the live rows into new blocks; views go on with the old ones."""
        labels, codes = self.view().arrays()
        self._blocks, self._rows, self._slab = [], 0, self._no_groups()
        self._used = np.zeros_like(self._used)
        self.append(labels, codes)

    def _new_block(self, first: int, wanted: int) -> _Block:
        if len(self._slab) == 0:
            # The first slabs are small, so that a thousand small collections do not cost a thousand full ones.
            have = sum(block.n for block in self._blocks)
            rows = min(SLAB_ROWS, max(FIRST_BLOCK_ROWS, have, wanted))
            self._slab = aligned_empty((-(-rows // GROUP), self.width, GROUP), np.uint8)
        groups = -(-BLOCK_ROWS // GROUP)
        codes, self._slab = self._slab[:groups], self._slab[groups:]
        return _Block(codes, first, None, None, None, 0)

    def _no_groups(self) -> NDArray[np.uint8]:
        return np.empty((0, self.width, GROUP), np.uint8)


def _extended(block: _Block, labels: Labels, codes: Codes) -> _Block:
    """The block with more rows, which there is room for. Bytes behind those that views know are written in place."""
    n = block.n + len(labels)
    offsets = block.offsets
    if offsets is None and labels[-1] - block.first != n - 1:
        offsets = np.empty(len(block.codes) * GROUP, np.uint32)
        offsets[: block.n] = np.arange(block.n)
    if offsets is not None:
        offsets[block.n : n] = labels - block.first
    # Whole groups at once, which is many times as fast; the rows before and behind them one by one.
    before = min(-block.n % GROUP, len(codes))
    groups = (len(codes) - before) // GROUP
    whole = slice(before, before + groups * GROUP)
    at = (block.n + before) // GROUP
    block.codes[at : at + groups] = codes[whole].reshape(groups, GROUP, codes.shape[1]).transpose(0, 2, 1)
    for part in (slice(0, before), slice(whole.stop, len(codes))):
        rows = np.arange(block.n + part.start, block.n + part.stop)
        block.codes[rows // GROUP, :, rows % GROUP] = codes[part]
    return replace(block, offsets=offsets, n=n)


def _bits(selected: NDArray[np.bool_]) -> NDArray[np.uint64]:
    return np.packbits(selected, bitorder="little").view(np.uint64)
