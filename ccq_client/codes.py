"""Codes on their way to the service: checked, as arrays of all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ccq_client.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from ccq_client.arrays import Columns


class CodeRows:
    """Codes of n items, checked.

    Parameters
    ----------
    codes:
        (n, M + 1) uint8 by database, as from ``CCQ.encode``; or n mappings of (M + 1,) by database, where an item that
        is not in a database has none.
    checksum:
        That of the model that made them.

    Attributes
    ----------
    n:
        Number of items.
    present:
        (n,) bool: those that have any code.

    Raises
    ------
    InputError
        They are not as above.
    """

    def __init__(self, codes: Columns, checksum: str) -> None:
        import numpy as np

        if isinstance(codes, Mapping):
            self._columns = {}
            for name, given in codes.items():
                array = np.asarray(given)
                if array.ndim != 2 or array.dtype != np.uint8:
                    raise InputError(
                        f"codes[{name!r}]: expected an array (n, M + 1) of uint8, got {array.shape} of {array.dtype}"
                    )
                self._columns[name] = np.ascontiguousarray(array), np.ones(len(array), dtype=bool)
        else:
            self._columns = gathered("codes", codes, "u1")
        if not self._columns:
            raise InputError("codes: expected arrays by database, as in {'image': array of shape (n, M + 1)}")
        sizes = {name: len(array) for name, (array, _) in self._columns.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"codes: expected as many rows of each database, got {sizes}")
        self.n = next(iter(sizes.values()))
        self.checksum = checksum
        self.present = np.any([present for _, present in self._columns.values()], axis=0)

    def row(self, row: int) -> dict[str, NDArray[np.uint8]]:
        """The codes of one item."""
        return {name: array[row] for name, (array, present) in self._columns.items() if present[row]}


def gathered(
    what: str, given: Sequence[Mapping[str, ArrayLike] | None], dtype: str
) -> dict[str, tuple[NDArray[Any], NDArray[np.bool_]]]:
    """Rows of n objects as arrays (n, width) by name, zeros where an object has none, and which have (n,) bool.

    Raises
    ------
    InputError
        Rows that are none, or of different lengths.
    """
    import numpy as np

    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        by = "modality" if what == "features" else "database"
        raise InputError(f"{what}: expected arrays by {by}, or a list of mappings, got {type(given).__name__}")
    found: dict[str, tuple[NDArray[Any], NDArray[np.bool_]]] = {}
    for row, mapping in enumerate(given):
        if not (mapping is None or isinstance(mapping, Mapping)):
            kind = type(mapping).__name__
            raise InputError(f"{what}[{row}]: expected a mapping of arrays by name, or None, got {kind}")
        for name, value in (mapping or {}).items():
            array = np.asarray(value)
            if name not in found:
                found[name] = np.zeros((len(given), array.size), dtype=dtype), np.zeros(len(given), dtype=bool)
            rows, present = found[name]
            kinds = "u" if dtype == "u1" else "fiu"
            if array.ndim != 1 or array.size != rows.shape[1] or array.dtype.kind not in kinds:
                raise InputError(
                    f"{what}[{row}][{name!r}]: expected {rows.shape[1]} numbers of kind {dtype}, got {array.shape} of "
                    f"{array.dtype}"
                )
            rows[row], present[row] = array, True
    return found
