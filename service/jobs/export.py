"""Features that a collection keeps, written where training reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from service.disk import check_room, disk_errors
from service.errors import InvalidRequestError
from service.jobs.arrays import feature_files, rows_together, written
from service.jobs.kind import Context
from service.kept import KeptLayout
from service.store.interface import CollectionRecord, Store


def export(store: Store, record: CollectionRecord, dims: Mapping[str, int], context: Context) -> None:
    """Write the kept features of all items to the directory of a job, unless an attempt before has done so.

    They are read a slice at a time, each of its own moment, so that nothing waits for it. Items that are indexed
    meanwhile are left out, and those that are deleted or replaced may be.

    Parameters
    ----------
    record:
        A collection that keeps features.
    dims:
        The dimensions of its model, in its order.

    Raises
    ------
    UnknownCollectionError
        It was deleted.
    InvalidRequestError
        It has no items.
    StorageFullError, StorageError
    """
    if feature_files(context.directory):
        return
    layout, rows = KeptLayout(record.keep, dims), rows_together(dims)
    with store.snapshot(record) as snapshot:
        total, last = snapshot.count(), snapshot.last()
    if total == 0:
        raise InvalidRequestError(f"collection {record.name!r} has no items to train on")
    check_room(context.directory, 4 * total * sum(dims.values()), "the training")
    done = 0
    with disk_errors("the features"), written(context.directory, dims) as take:
        for records in _slices(store, record, rows, last):
            take(layout.unpack(records))
            done += len(records)
            context.progress("export", done, total)


def _slices(store: Store, record: CollectionRecord, rows: int, last: int) -> Iterator[list[bytes]]:
    """Records of kept features, up to those of the item number `last`."""
    after = 0
    while True:
        with store.snapshot(record) as snapshot:
            found = [pair for pair in snapshot.kept_behind(after, rows) if pair[0] <= last]
        if not found:
            return
        after = found[-1][0]
        yield [kept for _, kept in found]
