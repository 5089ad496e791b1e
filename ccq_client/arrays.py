"""Feature vectors on their way to the service: checked, and as base64 of little-endian float32.

Texts and images, of which the service makes vectors itself where it has encoders, go as they are.

NumPy is imported when the first vector is sent, not with the client.
"""

from __future__ import annotations

import base64
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ccq_client.codes import gathered
from ccq_client.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

_BLOCK = 4096

Sent = str | dict[str, str]
"""A vector in base64, or a raw value as JSON has it."""


Columns = Mapping[str, "ArrayLike"] | Sequence[Mapping[str, "ArrayLike"] | None]
"""Arrays of n rows by name; or n mappings of one row by name, as `Item` has them."""


def encode(row: NDArray[Any]) -> str:
    """One vector (P,) float32, or a code row (M + 1,) uint8, as the service takes it."""
    return base64.b64encode(row.tobytes()).decode("ascii")


def raw(given: object) -> dict[str, str] | None:
    """A text, or the bytes of an image file, as the service takes it; None for anything else."""
    if isinstance(given, str):
        return {"text": given}
    return {"base64": base64.b64encode(given).decode("ascii")} if isinstance(given, bytes) else None


def vectors(features: Mapping[str, ArrayLike], where: str = "") -> dict[str, Sent]:
    """One vector of each modality, or what it is to be made of, as the service takes it.

    Parameters
    ----------
    features:
        (P,) or (1, P) of any float or integer type, a text, or the bytes of an image file, by modality.
    where:
        What to put before the name of a modality in a message.

    Raises
    ------
    InputError
        There is none, or one is no vector of finite numbers.
    """
    if not isinstance(features, Mapping) or not features:
        raise InputError(f"{where.rstrip('.') or 'the query'}: expected features by modality, as in {{'text': vector}}")
    found: dict[str, Sent] = {}
    for name, given in features.items():
        place = f"{where}{name}"
        as_it_is = raw(given)
        if as_it_is is not None:
            found[name] = as_it_is
            continue
        array = _numbers(place, given)
        if array.ndim == 2 and len(array) == 1:
            array = array[0]
        if array.ndim != 1 or not array.size:
            raise InputError(f"{place}: expected one vector of numbers, got an array of shape {array.shape}")
        rows, present = _checked(place, array[None], 0)
        if not present[0]:
            raise InputError(f"{place}: expected numbers, got a vector of NaN")
        found[name] = encode(rows[0])
    return found


class Features:
    """Features of n objects, checked.

    Parameters
    ----------
    features:
        (n, P) of any float or integer type, by modality; row i of each is the same object. A row of NaN: the object
        lacks the modality. Or n vectors, texts, or the bytes of n image files, None where an object has none.
        Or n mappings of (P,) by modality.

    Attributes
    ----------
    n:
        Number of objects.
    dims:
        P of each modality that is an array.
    present:
        (n,) bool: the objects that have any modality.

    Raises
    ------
    InputError
        An array is not as above.
    """

    def __init__(self, features: Columns) -> None:
        import numpy as np

        if not isinstance(features, Mapping):
            columns = gathered("features", features, "<f4")
            for array, present in columns.values():
                array[~present] = np.nan
            features = {name: array for name, (array, _) in columns.items()}
        if not isinstance(features, Mapping) or not features:
            raise InputError("features: expected arrays by modality, as in {'image': array of shape (n, P)}")
        self._raw = {name: _raw_values(name, given) for name, given in features.items() if _is_raw(given)}
        arrays = {name: given for name, given in features.items() if name not in self._raw}
        self._arrays = {name: _numbers(f"features[{name!r}]", _filled(given)) for name, given in arrays.items()}
        for name, array in self._arrays.items():
            if array.ndim != 2:
                one = ": (1, P) for one object, as of x[None]" if array.ndim == 1 else ""
                raise InputError(f"features[{name!r}]: expected an array of shape (n, P), got shape {array.shape}{one}")
        every = {**self._arrays, **self._raw}
        sizes = {name: len(every[name]) for name in features}
        if len(set(sizes.values())) > 1:
            raise InputError(f"features: expected as many rows of each modality, got {sizes}")
        self.n = next(iter(sizes.values()))
        self.dims = {name: array.shape[1] for name, array in self._arrays.items()}
        self.present = np.zeros(self.n, dtype=bool)
        for values in self._raw.values():
            self.present |= np.array([value is not None for value in values], dtype=bool)
        for start in range(0, self.n, _BLOCK):
            for _, present in self._block(start).values():
                self.present[start : start + _BLOCK] |= present

    def encoded(self, rows: Sequence[int]) -> Iterator[dict[str, Sent]]:
        """Some rows, ascending, as the service takes them, without those modalities that a row lacks."""
        start, block = -1, {}
        for row in rows:
            if row // _BLOCK * _BLOCK != start:
                start = row // _BLOCK * _BLOCK
                block = self._block(start)
            at = row - start
            found: dict[str, Sent] = {
                name: encode(values[at]) for name, (values, present) in block.items() if present[at]
            }
            for name, given in self._raw.items():
                as_it_is = raw(given[row])
                if as_it_is is not None:
                    found[name] = as_it_is
            yield found

    def write_npz(self, file: IO[bytes]) -> None:
        """Write all rows as an ``.npz`` file of float32 arrays, block by block; InputError for texts and images."""
        import numpy as np

        for name in self._raw:
            raise InputError(f"features[{name!r}]: expected an array of numbers: a model is trained on these alone")

        with zipfile.ZipFile(file, "w") as archive:
            for name, dim in self.dims.items():
                header = {"descr": "<f4", "fortran_order": False, "shape": (self.n, dim)}
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(member, header)
                    for start in range(0, self.n, _BLOCK):
                        member.write(self._rows(name, start)[0].tobytes())

    def _block(self, start: int) -> dict[str, tuple[NDArray[np.float32], NDArray[np.bool_]]]:
        return {name: self._rows(name, start) for name in self._arrays}

    def _rows(self, name: str, start: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        return _checked(f"features[{name!r}]", self._arrays[name][start : start + _BLOCK], start)


def decode(text: str, dtype: str) -> NDArray[Any]:
    """A vector ``<f4``, or a code row ``u1``, as the service gives it; ValueError if it is none."""
    import numpy as np

    return np.frombuffer(base64.b64decode(text, validate=True), dtype)


@contextmanager
def npz_file(features: Mapping[str, ArrayLike] | str | Path | None) -> Iterator[Path]:
    """An ``.npz`` file of some features: the one that is named, or a temporary one; InputError as of `Features`."""
    if isinstance(features, (str, Path)):
        Path(features).stat()  # FileNotFoundError
        if not zipfile.is_zipfile(features):
            raise InputError(f"{features}: expected an .npz file, or arrays by modality: this file is none")
        yield Path(features)
        return
    if not isinstance(features, Mapping):
        kind = type(features).__name__
        raise InputError(f"expected arrays by modality, as in {{'text': array}}, or an .npz file, got {kind}")
    checked = Features(features)
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        checked.write_npz(file)
        file.flush()
        yield Path(file.name)


def _is_raw(given: object) -> bool:
    return isinstance(given, (list, tuple)) and any(isinstance(value, (str, bytes)) for value in given)


def _raw_values(name: str, given: Any) -> Sequence[str | bytes | None]:
    """Texts and images, and None; InputError if anything else is among them."""
    for row, value in enumerate(given):
        if value is not None and not isinstance(value, (str, bytes)):
            kind = type(value).__name__
            raise InputError(f"features[{name!r}]: row {row}: expected a text or the bytes of an image, got {kind}")
    values: Sequence[str | bytes | None] = given
    return values


def _filled(given: Any) -> Any:
    """Vectors of which some are None, which other databases take for absent, with rows of NaN for these."""
    if not isinstance(given, (list, tuple)) or not any(row is None for row in given):
        return given
    there: Any = next((row for row in given if row is not None), None)
    if not hasattr(there, "__len__"):
        return given
    absent = [float("nan")] * len(there)
    return [absent if row is None else row for row in given]


def _numbers(place: str, given: ArrayLike) -> NDArray[Any]:
    """An array of real numbers; float types that NumPy itself lacks (bfloat16) count."""
    import numpy as np

    if isinstance(given, np.ma.MaskedArray):  # what is masked is not there
        given = np.ma.filled(given.astype(np.float32), np.nan)
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged, or on another device
        raise InputError(f"{place}: expected an array of numbers: {error}") from None
    if array.dtype.kind not in "fiu" and not (array.dtype.kind == "V" and "float" in array.dtype.name):
        of_objects = "; np.stack(column) makes one of a column of vectors" if array.dtype.kind == "O" else ""
        raise InputError(f"{place}: expected an array of numbers, got one of type {array.dtype}{of_objects}")
    return array


def _checked(place: str, array: NDArray[Any], start: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Rows (b, P) as little-endian float32, and which of them are not NaN; `start` is the number of the first."""
    import numpy as np

    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(array, dtype="<f4")
    finite = np.isfinite(rows)
    if finite.all():
        return rows, np.ones(len(rows), dtype=bool)
    absent = np.isnan(rows).all(axis=1)
    wrong = np.flatnonzero(~finite.all(axis=1) & ~absent)
    if len(wrong):
        row = int(wrong[0])
        column = int(np.flatnonzero(~finite[row])[0])
        raise InputError(
            f"{place}: row {start + row}, number {column}: expected a finite number that float32 can hold, got "
            f"{array[row, column]} (a row of NaN alone is an absent modality)"
        )
    return rows, ~absent
