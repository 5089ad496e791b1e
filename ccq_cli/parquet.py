"""Items from Parquet files: a column of ids, columns of features, and all others as payload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ccq_cli.data import feature_columns
from ccq_cli.exported import MANIFEST, NO_FEATURES, Manifest
from ccq_cli.slices import Coded, Slice, cut
from ccq_core.batches import arrow_batches, arrow_schema, rows_of_lists
from ccq_core.errors import FeatureError, InvalidInputError
from service.records import Codes

ID = "id"
ROLE = b"ccq"
"""Key of the metadata of a field that `ccq export` wrote: it says that the column is `PAYLOAD` or `CODES`."""
PAYLOAD = b"payload"
CODES = b"codes"


class ParquetSource:
    """Rows of Parquet files.

    The column `id` has ids, strings or integers; without it row numbers are the ids. Some columns of lists are
    features, called by modality; a null is an absent modality. What else there is makes the payload, without nulls; but
    `ccq export` has one column of whole payloads, and columns of codes, which it has marked.

    Parameters
    ----------
    paths:
        Files of the same columns, whose rows follow each other.
    columns:
        Those that are features; see `feature_columns`.
    codes:
        Store the codes of `ccq export`; otherwise features are encoded.

    Raises
    ------
    FileNotFoundError, InvalidInputError
        A file that is missing, is no Parquet file, has other columns than the first, or not those that are needed.
    """

    def __init__(self, paths: Sequence[str], columns: Sequence[str] = (), *, codes: bool = False) -> None:
        opened = [arrow_schema(path) for path in paths]
        schema = opened[0][0]
        for path, (other, _) in zip(paths, opened, strict=True):
            if other.names != schema.names or other.types != schema.types:
                raise InvalidInputError(f"{path}: has other columns than {paths[0]}: {other.names}, {schema.names}")
        if len(set(schema.names)) != len(schema.names):
            raise InvalidInputError(f"{paths[0]}: expected columns of distinct names, got {schema.names}")
        self._paths = paths
        self._firsts = np.cumsum([0, *(rows for _, rows in opened)])
        self.rows = int(self._firsts[-1])
        self.named = ID in schema.names
        self._manifest = _manifest(paths[0], schema) if codes else None
        self.indexes: Sequence[str] = self._manifest.indexes if self._manifest else ()
        self._features = feature_columns(paths[0], columns)
        marked = {field.name: (field.metadata or {}).get(ROLE) for field in schema}
        self._whole = next((name for name, role in marked.items() if role == PAYLOAD), None)
        special = {ID, self._whole, *self._features, *(name for name, role in marked.items() if role == CODES)}
        self._details = [name for name in schema.names if name not in special]
        if not codes and not self._features and MANIFEST.encode() in (schema.metadata or {}):
            raise InvalidInputError(f"{paths[0]}: {NO_FEATURES}")
        if not codes and not self._features:
            raise InvalidInputError(
                f"{paths[0]}: expected columns of lists of floats, called by modality, or others that --column "
                f"names, got columns {schema.names}"
            )

    def slices(self, size: int) -> Iterator[Slice]:
        """All items in order, from up to `size` rows at a time; InvalidInputError names the file and row of a fault."""
        first = 0
        for path in self._paths:
            for batch in arrow_batches(path, size, None):
                yield self._slice(path, batch, first)
                first += batch.num_rows

    def payload_fault(self, row: int, reason: str) -> InvalidInputError:
        """The error that something is wrong with the payload of a row."""
        return InvalidInputError(f"{self._place(row)}: {reason}")

    def twice(self, first: int, row: int, item_id: str) -> InvalidInputError:
        """The error that two rows have the same id."""
        return InvalidInputError(f"{self._place(first)} and {self._place(row)} are both {item_id}")

    def _place(self, row: int) -> str:
        at = int(np.searchsorted(self._firsts, row, side="right")) - 1
        return f"{self._paths[at]}: row {row - int(self._firsts[at])}"

    def _slice(self, path: str, batch: Any, first: int) -> Slice:
        n = batch.num_rows
        ids = [str(row) for row in range(first, first + n)]
        if self.named:
            ids = batch.column(ID).to_pylist()
            if set(map(type, ids)) - {str}:
                ids = [self._id(value, row) for row, value in enumerate(ids, first)]
        features = {}
        for name in self._features:
            at = first - int(self._firsts[self._paths.index(path)])
            array = rows_of_lists(batch.column(name), f"{path}: rows {at} to {at + n - 1}: column {name!r}")
            if array is not None:
                features[name] = array
        coded = None if self._manifest is None else _coded(self._manifest, batch)
        try:
            return cut(first, ids, self._payloads(batch, first), features, coded)
        except FeatureError as error:
            place = self._place(first if error.row is None else error.row)
            raise InvalidInputError(f"{place}: column {error.modality!r}: {error.reason}") from None

    def _id(self, value: Any, row: int) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InvalidInputError(f"{self._place(row)}: id: expected a string or an integer, got {value!r}")
        return str(value)

    def _payloads(self, batch: Any, first: int) -> list[bytes | None]:
        if self._whole is not None:
            texts = batch.column(self._whole).to_pylist()
            return [None if text is None else text.encode() for text in texts]
        if not self._details:
            return [None] * int(batch.num_rows)
        payloads: list[bytes | None] = []
        for row, values in enumerate(batch.select(self._details).to_pylist(), first):
            try:
                payloads.append(orjson.dumps({name: value for name, value in values.items() if value is not None}))
            except orjson.JSONEncodeError as error:
                raise self.payload_fault(row, f"cannot be written as JSON ({error})") from None
        return payloads


def _manifest(path: str, schema: Any) -> Manifest:
    data = (schema.metadata or {}).get(MANIFEST.encode())
    if data is None:
        raise InvalidInputError(f"{path}: holds no codes: expected a file that `ccq export` wrote")
    return Manifest.parse(data, f"{path}: metadata")


def _coded(manifest: Manifest, batch: Any) -> Coded:
    shape = (batch.num_rows, len(manifest.databases))
    present = np.zeros(shape, dtype=bool)
    rows: NDArray[np.uint8] = np.zeros((*shape, manifest.code_width), dtype=np.uint8)
    for i, database in enumerate(manifest.databases):
        column = batch.column(f"codes.{database}")
        has = np.asarray(column.is_valid())
        present[:, i] = has
        joined = b"".join(column.drop_null().to_pylist())
        rows[has, i] = np.frombuffer(joined, dtype=np.uint8).reshape(-1, manifest.code_width)
    return Coded(tuple(manifest.databases), manifest.model_checksum, Codes(present, rows))
