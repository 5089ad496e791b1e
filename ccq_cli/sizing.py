"""What a collection takes, before there is one: a small model of memory, disk and time, documented in docs/cli.md."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ccq_cli import inputs
from ccq_core.quantizer import K

BITS = (8, 16, 24, 32, 48, 64, 96, 128)
PROCESS_BYTES = 130_000_000
"""A server without items, as it was measured: interpreter, libraries, threads."""
ROW_BYTES = 47
"""On disk, of an item without its id, payload, codes and features: keys, indexes and pages of SQLite (docs/bulk.md)."""
KEPT_SHARE = 1.15
"""Kept features on disk: so many times their bytes, since pages are not filled."""
LATENT_BYTES = 12
"""In memory, of an item that results are ranked anew by, beside two bytes a latent dimension."""
SERVICE_MS = 0.6
"""Of a search over one connection, what is not the scan (docs/speed.md)."""
KEPT_BYTES = {"none": 0, "float16": 2, "int8": 1}
OBJECTS_A_CODEWORD = 10
"""Fewer objects than that for each codeword are few to train on."""
USUAL_BITS = 64
"""Up to here longer codes were no worse even of 1,300 to 2,200 objects (docs/paper.md, the rows CCQ)."""
_SAMPLE_ROWS, _MOST_ROWS, _SAMPLE_BYTES = 1 << 20, 8 << 20, 32 << 20
"""To measure with: more than caches hold, where there are to be so many items."""
_RUNS = 7


@dataclass(frozen=True)
class Wanted:
    """What somebody wants.

    Attributes
    ----------
    items:
        How many there are to be.
    dims:
        Dimension of each modality.
    item_bytes:
        Id and payload of an item.
    keep:
        How features are kept.
    norm:
        Whether codes have a norm byte.
    memory, latency_ms:
        Most bytes of the server, also while the collection is encoded anew, which takes kept features; and most
        milliseconds of a search. None: no matter.
    """

    items: int
    dims: Mapping[str, int]
    item_bytes: int
    keep: str
    norm: bool
    memory: int | None
    latency_ms: float | None


@dataclass(frozen=True)
class Option:
    """What a length of codes takes.

    Attributes
    ----------
    bits, row_bytes:
        Of a code, and of a code row with its norm byte.
    memory, memory_reencoding, disk:
        Bytes of the server, the same while the collection is encoded anew, and of its data directory.
    scan_ms, latency_ms:
        Of one search through one database in one thread: the scan, and all of it.
    needed:
        Bytes of the server at most: `memory_reencoding` where features are kept, `memory` where they are not, since
        such a collection cannot be encoded anew.
    fits_memory, fits_latency:
        Whether it is as it is wanted.
    few:
        Whether so many items are few to train such codes on.
    """

    bits: int
    row_bytes: int
    memory: int
    memory_reencoding: int
    disk: int
    needed: int
    scan_ms: float
    latency_ms: float
    fits_memory: bool
    fits_latency: bool
    few: bool

    @property
    def fits(self) -> bool:
        """Whether everything is as it is wanted."""
        return self.fits_memory and self.fits_latency


def databases(dims: Mapping[str, int]) -> int:
    """Code rows of an item that has all modalities: one for each, and that of the pair."""
    return len(dims) + (len(dims) > 1)


def option(wanted: Wanted, bits: int, ns_per_item: float) -> Option:
    """What codes of so many bits take.

    Parameters
    ----------
    ns_per_item:
        Of a scan, for each item.
    """
    books = bits // 8
    row = books + wanted.norm
    codes = wanted.items * databases(wanted.dims) * row
    kept = KEPT_BYTES[wanted.keep] * sum(wanted.dims.values()) * KEPT_SHARE
    scan = wanted.items * ns_per_item / 1e6
    memory, latency = PROCESS_BYTES + codes, SERVICE_MS + scan
    needed = memory + codes * (wanted.keep != "none")
    return Option(
        bits=bits,
        row_bytes=row,
        memory=memory,
        memory_reencoding=memory + codes,
        needed=needed,
        disk=codes + round(wanted.items * (ROW_BYTES + wanted.item_bytes + kept)),
        scan_ms=scan,
        latency_ms=latency,
        fits_memory=wanted.memory is None or needed <= wanted.memory,
        fits_latency=wanted.latency_ms is None or latency <= wanted.latency_ms,
        few=few(wanted.items, bits),
    )


def few(objects: int, bits: int) -> bool:
    """Whether so many objects are few to train codes on."""
    return objects < OBJECTS_A_CODEWORD * K * bits // 8


def choose(options: list[Option]) -> Option | None:
    """The longest code that fits and that there are objects enough to train for, where they are few up to the usual."""
    fitting = [one for one in options if one.fits and (not one.few or one.bits <= USUAL_BITS)]
    return max(fitting, key=lambda one: one.bits, default=None)


def measure(lengths: Sequence[int], items: int) -> list[float]:
    """Nanoseconds that a scan takes for an item on this machine, in one thread, by lengths that ascend.

    Other work only ever adds to what is measured, so the least counts, and no length takes more than a longer one.
    """
    found = [_measure(bits, items) for bits in lengths]
    return [min(found[i:]) for i in range(len(found))]


def _measure(bits: int, items: int) -> float:
    """The least that was measured for one length, on random codes."""
    rows = min(max(_SAMPLE_BYTES // (bits // 8 + 1), _SAMPLE_ROWS), _MOST_ROWS)
    n = min(items, rows)
    given = inputs.random(bits // 8, n)
    seconds = []
    for _ in range(_RUNS + 1):
        tables = given.tables(1, "euclidean")
        began = time.perf_counter()
        given.view.search(tables, 10)
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:]) / n * 1e9


def size(amount: float) -> str:
    """Bytes for people."""
    if amount < 1000:
        return f"{amount:,.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 1000:
            return f"{amount:,.1f} {unit}"
    return f"{amount / 1000:,.1f} TB"


def advice(wanted: Wanted, options: list[Option]) -> list[str]:
    """What does not fit, and what to change."""
    shortest = options[0]
    found = []
    if wanted.memory is not None and not shortest.fits_memory:
        rows = databases(wanted.dims) * shortest.row_bytes * (1 + (wanted.keep != "none"))
        room = (wanted.memory - PROCESS_BYTES) // rows
        most = (
            f"a server without any item takes {size(PROCESS_BYTES)} already; give it more memory"
            if room < 1
            else f"at most {room:,} items of this kind fit; give more memory, or divide the items among several servers"
        )
        found.append(
            f"memory: {shortest.bits} bits already take {size(shortest.needed)} of {size(wanted.memory)}: {most}"
        )
        if room > 0 and len(wanted.dims) > 1:
            found.append(
                f"memory: an item has up to {databases(wanted.dims)} code rows, one for each modality and that of the "
                "pair; index items by one modality alone where no more is searched"
            )
        if room > 0 and wanted.norm:
            found.append("memory: --norm none saves a byte of each row, where searches rank by cosine alone")
    if wanted.latency_ms is not None and not shortest.fits_latency:
        found.append(
            f"latency: {shortest.bits} bits already take {shortest.latency_ms:.1f} ms of {wanted.latency_ms:g} in one "
            "thread: serve on a machine with more processors, which a large search shares, divide the items among "
            "several servers, or search with filters that few items match"
        )
    if wanted.keep != "none":
        bits = (choose(options) or shortest).bits
        dim = min(bits, *wanted.dims.values())
        held = size(wanted.items * (2 * dim + LATENT_BYTES))
        found.append(
            f"rescore: to rank anew without the disk a server holds {held} more for each database that is searched so "
            f"({dim} latent dimensions, those of {bits} bits by default): CCQ_RESCORE_CACHE_BYTES, 268.4 MB by "
            "default"
        )
    if all(one.few for one in options):
        found.append(
            f"training: {wanted.items:,} items are few for {K:,} codewords of 8 bits ({OBJECTS_A_CODEWORD * K:,} or "
            "more are better): expect codes to be good for what is like the training data alone"
        )
    return found
