"""The model file: one safetensors file (arrays, and a JSON header), so it can be read from a stranger.

Layout, version 1. The header's metadata has one key, ``ccq``, a JSON object:

- ``format``: "ccq-model"; ``version``: 1;
- ``checksum``: SHA-256 (hex) over the JSON of all other keys and every array's name, shape and bytes, in order of name;
- ``parameters``: the arguments of `CCQ`; ``losses``: the training loss after each iteration;
- ``modalities``: list of ``{name, dim, weight, steps}`` in the order of training.

Arrays, all float32, finite, and exactly these: ``codebooks`` (M, 256, D); ``norm_levels`` (256,); for modality i
``mapping.{i}`` (Q_i, D), Q_i the dimension after preprocessing, and for its step j ``step.{i}.{j}.{array}`` with the
shapes of `preprocessing.array_shapes`.

Refused, each with its reason: anything that is not the above (ModelFormatError: a reader that guesses is a reader that
can be fooled); a file shorter than its header says (ModelTruncatedError); contents that do not match the checksum
(ModelCorruptError); a higher version (ModelVersionError). Sizes are checked against the file's length before anything
of that size is allocated. A model that was read can be written again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from ccq_core.errors import (
    InvalidInputError,
    ModelCorruptError,
    ModelFileError,
    ModelFormatError,
    ModelTruncatedError,
    ModelVersionError,
)
from ccq_core.features import MAX_ABS, Float32, check_real, check_weight, check_whole, in_short
from ccq_core.files import kind_of
from ccq_core.preprocessing import array_shapes, check_steps, output_dim
from ccq_core.quantizer import K

FORMAT = "ccq-model"
VERSION = 1
_KEY = "ccq"
_MAX_HEADER = 8 << 20


@dataclass(frozen=True)
class ModalityContents:
    """One modality as the file holds it; `arrays` has one dict per step."""

    name: str
    dim: int
    weight: float
    steps: tuple[str, ...]
    arrays: tuple[dict[str, Float32], ...]
    mapping: Float32


@dataclass(frozen=True)
class Contents:
    """Everything in a model file."""

    parameters: dict[str, Any]
    modalities: list[ModalityContents]
    codebooks: Float32
    norm_levels: Float32
    losses: list[float]


def dump(contents: Contents) -> bytes:
    """The bytes of a model file. Equal contents give equal bytes."""
    arrays: dict[str, Float32] = {"codebooks": contents.codebooks, "norm_levels": contents.norm_levels}
    for i, modality in enumerate(contents.modalities):
        arrays[f"mapping.{i}"] = modality.mapping
        for j, step in enumerate(modality.arrays):
            for name, array in step.items():
                arrays[f"step.{i}.{j}.{name}"] = array
    arrays = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()}
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "parameters": contents.parameters,
        "losses": contents.losses,
        "modalities": [
            {"name": m.name, "dim": m.dim, "weight": m.weight, "steps": list(m.steps)} for m in contents.modalities
        ],
    }
    header["checksum"] = _checksum(header, arrays)
    # One metadata key only: safetensors does not fix the order of several.
    return safetensors.numpy.save(arrays, metadata={_KEY: json.dumps(header, sort_keys=True, allow_nan=False)})


def parse(data: bytes) -> Contents:
    """Check and read the bytes of a model file.

    Raises
    ------
    ModelFormatError, ModelTruncatedError, ModelCorruptError, ModelVersionError
        See the module's description.
    """
    try:
        header = _read_header(data)
        arrays = safetensors.numpy.load(data)
        if _checksum(header, arrays) != header.get("checksum"):
            raise ModelCorruptError("the checksum does not match the contents: the file was damaged; fetch it again")
        return _contents(header, arrays)
    except InvalidInputError as error:
        raise ModelFormatError(f"the header does not describe a model: {error}") from None
    except (safetensors.SafetensorError, KeyError, AttributeError) as error:  # the latter two: an array's type
        raise ModelFormatError(f"not a readable safetensors file: {error}") from None
    except RecursionError:
        raise ModelFormatError("the header is nested too deeply") from None


def write(path: str | os.PathLike[str], data: bytes, mode: int | None = None) -> None:
    """Write a file so that a crash leaves either the old or the new one: temporary name, fsync, rename, fsync.

    Its permissions are `mode`, never more; by default what open() gives a new file. Links are followed. What is no
    regular file, as a pipe or a device, is written to directly. An OSError names `path`.
    """
    with _named(path):
        if _is_special(path):
            Path(path).write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data, mode)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that `write` would raise, as far as that is known before there is anything to write."""
    with _named(path):
        if not _is_special(path):
            tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an OSError name the file that was asked for, not the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Whether there is something here that is no regular file; a directory, and no name at all, are an OSError."""
    if not os.fspath(path):
        raise FileNotFoundError(errno.ENOENT, "a file name is needed")
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    handle, name = tempfile.mkstemp(prefix=".ccq-", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is None:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        temporary.chmod(mode)  # mkstemp makes it private
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read(path: str | os.PathLike[str]) -> bytes:
    """The file's bytes; a file that cannot start like a model file is refused before it is read whole."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(8)
        _header_length(head, size)
        return head + file.read()


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let a ModelFileError name the file that was read."""
    try:
        yield
    except ModelFileError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def _header_length(head: bytes, size: int) -> int:
    if size == 0:
        raise ModelTruncatedError("the file is empty")
    if size < 8:
        raise ModelTruncatedError(f"the file has {size} bytes, fewer than the 8 that a model file starts with")
    length: int = struct.unpack("<Q", head[:8])[0]
    if length > _MAX_HEADER:
        found = kind_of(head) or f"it starts with {head[:8]!r}, not with a safetensors header"
        raise ModelFormatError(f"no CCQ model: {found}")
    if 8 + length > size:
        raise ModelTruncatedError(f"the file ends at byte {size}, inside its header of {length} bytes")
    return length


def _read_header(data: bytes) -> dict[str, Any]:
    """The JSON under the metadata key, once the file is known to be whole and of a version that can be read."""
    length = _header_length(data[:8], len(data))
    try:
        outer = _json(data[8 : 8 + length])
        metadata = outer.pop("__metadata__", None)
        ends = (check_whole("data_offsets", entry["data_offsets"][1], 0) for entry in outer.values())
        end = max(ends, default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ModelFormatError(f"no CCQ model: the safetensors header is not valid ({type(error).__name__})") from None
    if 8 + length + end > len(data):
        raise ModelTruncatedError(f"the file has {len(data)} bytes, its header announces {8 + length + end}")
    if not isinstance(metadata, dict) or not isinstance(metadata.get(_KEY), str):
        raise ModelFormatError(f"a safetensors file, but no CCQ model: it has no {_KEY!r} metadata")
    try:
        header = _json(metadata[_KEY])
    except ValueError:
        raise ModelCorruptError("the model header is damaged: not valid JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFormatError(f"a safetensors file, but no CCQ model: its format is not {FORMAT!r}")
    version = check_whole("version", header.get("version"), 1)
    if version > VERSION:
        raise ModelVersionError(
            f"the file has format version {version}, this package reads up to {VERSION}: upgrade ccq-search"
        )
    return header


def _json(text: str | bytes) -> Any:
    """The JSON of a file; ValueError where it is none, and where a number is none or is infinite."""

    def finite(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError(f"expected a number, got {digits}")
        return number

    return json.loads(text, parse_float=finite, parse_constant=finite)


def _fields(place: str, value: object, *names: str) -> list[Any]:
    """The values of a JSON object that has exactly these keys; InvalidInputError for anything else."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise InvalidInputError(f"{place}: expected an object of {', '.join(names)}, got {in_short(value)}")
    return [value[name] for name in names]


def _list(place: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInputError(f"{place}: expected a list, got {in_short(value)}")
    return value


def _checksum(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    rest = {key: value for key, value in header.items() if key != "checksum"}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _contents(header: dict[str, Any], arrays: dict[str, Any]) -> Contents:
    """Check that the arrays are exactly those that the header calls for."""
    arrays = dict(arrays)

    def take(name: str, shape: tuple[int, ...], most: float = float(np.finfo(np.float32).max)) -> Float32:
        array = arrays.pop(name, None)
        if array is None:
            raise ModelFormatError(f"array {name!r} is missing")
        if array.dtype != np.float32 or array.shape != shape:
            raise ModelFormatError(
                f"array {name!r}: expected shape {shape} of float32, got {array.shape} of {array.dtype}"
            )
        if not (np.abs(array) <= most).all():
            raise ModelFormatError(f"array {name!r}: holds numbers that are not finite, or above {most:g}")
        return np.asarray(array)

    _, _, _, parameters, losses, entries = _fields(
        "header", header, "format", "version", "checksum", "parameters", "losses", "modalities"
    )
    if not isinstance(parameters, dict):
        raise InvalidInputError(f"parameters: expected an object, got {in_short(parameters)}")
    m = check_whole("bits", parameters.get("bits"), 8, 128) // 8
    shape: tuple[int, ...] = arrays["codebooks"].shape if "codebooks" in arrays else ()
    if len(shape) != 3 or 0 in shape:
        raise ModelFormatError(f"codebooks: expected shape ({m}, {K}, D), got {shape}")
    dim = shape[2]
    # Latent vectors stay below MAX_ABS as well, so that no distance overflows.
    codebooks = take("codebooks", (m, K, dim), MAX_ABS)
    norm_levels = take("norm_levels", (K,), MAX_ABS**2)
    if (np.diff(norm_levels) < 0).any() or norm_levels[0] < 0:
        raise ModelFormatError("norm_levels: expected ascending numbers from 0 up")
    modalities = []
    for i, entry in enumerate(_list("modalities", entries)):
        name, size, weight, names = _fields(f"modalities[{i}]", entry, "name", "dim", "weight", "steps")
        if not isinstance(name, str):
            raise InvalidInputError(f"modalities[{i}]: expected a name, got {in_short(name)}")
        size = check_whole(f"modalities[{i}].dim", size, 1)
        weight = check_weight(f"modalities[{i}].weight", weight)
        steps = check_steps(_list("steps", names))
        if list(steps) != names:
            raise InvalidInputError(f"modalities[{i}].steps: expected names of steps, got {in_short(names)}")
        step_arrays: list[dict[str, Float32]] = []
        width = size
        for j, step in enumerate(steps):
            shapes = array_shapes(step, width)
            step_arrays.append({part: take(f"step.{i}.{j}.{part}", shape) for part, shape in shapes.items()})
            width = output_dim([step], width)
        mapping = take(f"mapping.{i}", (width, dim))
        modalities.append(ModalityContents(name, size, weight, steps, tuple(step_arrays), mapping))
    distinct = {modality.name for modality in modalities}
    if not modalities or len(distinct) != len(modalities):
        raise ModelFormatError(f"modalities: expected distinct names, got {in_short(sorted(distinct))}")
    if arrays:
        raise ModelFormatError(f"arrays that belong to no model: {in_short(sorted(arrays))}")
    most = float(np.finfo(np.float64).max)
    return Contents(
        parameters,
        modalities,
        codebooks,
        norm_levels,
        [check_real("losses", loss, -most, most) for loss in _list("losses", losses)],
    )
