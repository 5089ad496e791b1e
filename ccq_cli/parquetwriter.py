"""One Parquet file that `ccq export` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_cli.exported import MANIFEST
from ccq_cli.origins import Origin, Stored
from ccq_cli.parquet import CODES, ID, PAYLOAD, ROLE
from ccq_cli.writers import sync
from ccq_core.batches import parquet_module
from ccq_core.errors import InvalidInputError
from ccq_core.features import Float32

_PAYLOAD = "payload"
_ROWS = 10_000


class ParquetWriter:
    """A file of ids, payloads as JSON, features as lists of float32, and codes as bytes; a null is an absent one.

    Parameters
    ----------
    path:
        The file.
    origin:
        What is exported.

    Raises
    ------
    InvalidInputError
        pyarrow is not installed, or a modality has the name of another column.
    """

    def __init__(self, path: Path, origin: Origin) -> None:
        parquet = parquet_module()
        import pyarrow as pa

        self._path = path
        self._manifest = manifest = origin.manifest
        for name in {ID, _PAYLOAD} & set(manifest.features):
            raise InvalidInputError(f"modality {name!r} cannot be a column of its own: export as npy")
        fields = [
            pa.field(ID, pa.string(), nullable=False),
            pa.field(_PAYLOAD, pa.string(), metadata={ROLE: PAYLOAD}),
            *(pa.field(name, pa.list_(pa.float32())) for name in manifest.features),
            *(
                pa.field(f"codes.{name}", pa.binary(manifest.code_width), metadata={ROLE: CODES})
                for name in manifest.databases
            ),
        ]
        self._schema = pa.schema(fields, metadata={MANIFEST: manifest.dump()})
        self._writer = parquet.ParquetWriter(path, self._schema)

    def write(self, part: Stored) -> None:
        """Add items."""
        import pyarrow as pa

        columns = [
            pa.array(part.ids, pa.string()),
            pa.array([None if payload is None else payload.decode() for payload in part.payloads], pa.string()),
            *(_lists(part.features[name]) for name in self._manifest.features),
        ]
        for at in range(len(self._manifest.databases)):
            rows, present = part.codes.rows[:, at], part.codes.present[:, at].tolist()
            values = [row.tobytes() if has else None for row, has in zip(rows, present, strict=True)]
            columns.append(pa.array(values, pa.binary(self._manifest.code_width)))
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def finish(self, keep: NDArray[np.bool_]) -> None:
        """Complete the file, without the rows that are not in `keep` (n,) bool."""
        self._writer.close()
        if not keep.all():
            self._rewrite(keep)
        with self._path.open("rb") as file:
            sync(file)

    def close(self) -> None:
        """Close the file, complete or not."""
        self._writer.close()

    def _rewrite(self, keep: NDArray[np.bool_]) -> None:
        parquet = parquet_module()
        import pyarrow as pa

        kept = self._path.with_name("kept")
        with parquet.ParquetFile(self._path) as old, parquet.ParquetWriter(kept, self._schema) as new:
            at = 0
            for batch in old.iter_batches(_ROWS):
                wanted = keep[at : at + batch.num_rows]
                at += batch.num_rows
                new.write_batch(batch.filter(pa.array(wanted)).cast(self._schema))
        kept.replace(self._path)


def _lists(rows: Float32) -> Any:
    """(n, P) numbers as lists; null for a row of NaN."""
    import pyarrow as pa

    absent = np.isnan(rows).all(axis=1)
    ends = np.cumsum(np.where(absent, 0, rows.shape[1]))
    # An offset that is null makes a null of the list that begins there.
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32), mask=np.append(absent, False))
    return pa.ListArray.from_arrays(offsets, pa.array(rows[~absent].reshape(-1)))
