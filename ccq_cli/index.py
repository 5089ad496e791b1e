"""`ccq index`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import click
from click.core import ParameterSource

from ccq_cli.api import collection_option, connect_for_long, service_options
from ccq_cli.arrays import ArraySource, open_export
from ccq_cli.console import err, out, row_progress
from ccq_cli.data import column_option, is_parquet, read_features
from ccq_cli.destinations import Destination, Service, open_directory
from ccq_cli.inorder import in_order, stop_at_interrupt
from ccq_cli.parquet import ParquetSource
from ccq_cli.shown import local_json_option, print_json
from ccq_cli.slices import Distinct, Slice, Source, check_payloads

PER_REQUEST = 1000
PER_COMMIT = 10_000

HELP = """DATA is NAME=FILE.npy for each modality (shape (n, P); a row of NaN marks an object without it), or one
FILE.npz whose two-dimensional arrays are called by modality, NAME or NAME_train; or files FILE.parquet, with ids in a
column `id`, a column of lists of floats for each modality (or those that --column names), and all other columns as
payload; or a directory or a .parquet file that `ccq export` wrote."""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("index", epilog=HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("--ids", type=FILE, help="Text file, one id a line.")
@click.option(
    "--payloads",
    type=FILE,
    help="Text file, one JSON object a line. An id in it is part of the payload; ids come from --ids.",
)
@click.option("--items", type=FILE, help='Instead of both: text file, one {"id": ..., "payload": {...}} a line.')
@column_option
@click.option("--codes", is_flag=True, help="Store the codes of an export as they are; the model has to be the same.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    help=f"Rows in a request, {PER_REQUEST:,} by default; with --data in a commit, {PER_COMMIT:,} by default.",
)
@click.option("--in-flight", type=click.IntRange(1, 64), default=4, show_default=True, help="Requests at one time.")
@click.option("--check/--no-check", default=True, show_default=True, help="Look at all rows before any is stored.")
@click.option(
    "--data",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Data directory to write to, which no server uses; instead of --url.",
)
@click.option("--model", type=FILE, help="With --data: model file of the collection, which is made if it is missing.")
@click.option("--keep", type=click.Choice(["none", "float16", "int8"]), help="With --model: keep features.")
@local_json_option
@service_options
@collection_option
@click.pass_context
def command(
    ctx: click.Context,
    data: tuple[str, ...],
    ids: Path | None,
    payloads: Path | None,
    items: Path | None,
    columns: tuple[str, ...],
    codes: bool,
    batch: int | None,
    in_flight: int,
    check: bool,
    directory: Path | None,
    model: Path | None,
    keep: str | None,
    as_json: bool,
    url: str,
    api_key: str | None,
    collection: str,
) -> None:
    """Store DATA in a running service, or in the data directory of one that does not run.

    Without ids the row numbers are the ids. An item whose id is known is replaced whole, so what was stopped may just
    be done again. Rows that have none of the modalities are left out. Everything is checked before anything is stored.
    """
    if directory is not None and ctx.get_parameter_source("url") is ParameterSource.COMMANDLINE:
        raise click.UsageError("expected --data or --url, got both")
    if directory is None and (model is not None or keep is not None):
        raise click.UsageError("--model and --keep are for --data; for a service there is `ccq collections create`")
    if keep is not None and model is None:
        raise click.UsageError("--keep is for a new collection: expected --model too")
    source = open_source(data, ids, payloads, items, columns, codes=codes)
    if not source.named:
        err.print("note: without ids the numbers of rows are the ids; other items that have them are replaced")
    size = batch or (PER_REQUEST if directory is None else PER_COMMIT)
    started = time.perf_counter()
    with stop_at_interrupt() as stop:
        opened: AbstractContextManager[Destination] = (
            _open_service(url, api_key, collection, source, in_flight, stop)
            if directory is None
            else open_directory(directory, collection, model, keep)
        )
        with opened as to:
            if check:
                _check(source, stop)
            stored = _store(source, to, size, stop, check=not check)
            if codes and source.indexes:  # last: to fill an index at once is faster
                to.add_indexes(source.indexes)
    seconds = time.perf_counter() - started
    left_out = source.rows - stored
    if as_json:
        print_json({"collection": collection, "indexed": stored, "left_out": left_out, "seconds": seconds})
        return
    note = f"; {left_out:,} rows without features left out" if left_out else ""
    out.print(
        f"indexed {stored:,} items into collection {collection}{note} "
        f"({seconds:.1f} s, {stored / seconds:,.0f} items/s)"
    )


def open_source(
    data: tuple[str, ...],
    ids: Path | None,
    payloads: Path | None,
    items: Path | None,
    columns: tuple[str, ...],
    *,
    codes: bool,
) -> Source:
    """What the words of the command line name; what cannot be read is told by the errors of its kind."""
    if items is not None and (ids is not None or payloads is not None):
        raise click.UsageError("expected --items, or --ids and --payloads, got both")
    lines = ids is not None or payloads is not None or items is not None
    exported = len(data) == 1 and Path(data[0]).is_dir()
    if exported or all(is_parquet(word) for word in data):
        if lines:
            raise click.UsageError("ids and payloads are in the files: --ids, --payloads and --items are for arrays")
        return open_export(Path(data[0]), codes=codes) if exported else ParquetSource(data, columns, codes=codes)
    if columns:
        raise click.UsageError("--column is for files FILE.parquet")
    if codes:
        raise click.UsageError("--codes is for what `ccq export` wrote: a directory, or a .parquet file")
    return ArraySource(read_features(data), ids, payloads, items)


@contextmanager
def _open_service(
    url: str, api_key: str | None, collection: str, source: Source, in_flight: int, stop: threading.Event
) -> Iterator[Service]:
    with connect_for_long(url, api_key, stop) as client:
        yield Service(client, collection, source, in_flight)


def _check(source: Source, stop: threading.Event) -> None:
    """Look at all rows; InvalidInputError names the file and row of the first fault."""
    distinct = Distinct(source, PER_COMMIT)
    with row_progress("checking", source.rows) as progress:
        for part in source.slices(PER_COMMIT):
            check_payloads(source, part)
            distinct.check(part)
            progress(part.end)
            if stop.is_set():
                raise click.Abort


def _store(source: Source, to: Destination, size: int, stop: threading.Event, *, check: bool) -> int:
    """Store all items, or those before an error or a Ctrl-C, and then say which; returns their number.

    Parameters
    ----------
    size:
        How many rows are stored at a time.
    check:
        Whether ids are still to be compared.
    """
    distinct = Distinct(source, size)
    items = row = 0

    def slices() -> Iterator[Slice]:
        for part in source.slices(size):
            if stop.is_set():
                return
            if check:
                distinct.check(part)
            yield part

    def tell() -> None:
        others = "; some behind it may be stored too" if to.ahead else ""
        if not items:
            err.print(f"stopped: {'the first rows are not stored' if others else 'nothing was stored'}{others}")
            return
        err.print(f"stopped: the first {items:,} items are stored, row {row:,} of {source.rows:,} is next{others}")

    try:
        with row_progress("indexing", source.rows) as progress:
            for part, prepared in in_order(lambda part: (part, to.prepare(part)), slices(), to.threads):
                to.store(prepared)
                items, row = items + len(part), part.end
                progress(row)
    except BaseException:
        tell()
        raise
    if row < source.rows:  # it was interrupted
        tell()
        raise click.Abort
    return items
