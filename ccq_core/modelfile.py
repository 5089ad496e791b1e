"""The model file: one safetensors file (arrays, and a JSON header), so it can be read from a stranger.

Layout, version 1. The header's metadata has one key, ``ccq``, a JSON object:

- ``format``: "ccq-model"; ``version``: 1;
- ``checksum``: SHA-256 (hex) over the JSON of all other keys and every array's name, shape and bytes, in order of name;
- ``parameters``: the arguments of `CCQ`; ``losses``: the training loss after each iteration;
- ``modalities``: list of ``{name, dim, weight, steps}`` in the order of training.

Arrays, all float32, finite, and exactly these: ``codebooks`` (M, 256, D); ``norm_levels`` (256,); for modality i
``mapping.{i}`` (P_i, D) and for its step j ``step.{i}.{j}.{array}`` with the shapes of `preprocessing.array_shapes`.

Refused, each with its reason: anything that is not the above (ModelFormatError: a reader that guesses is a reader that
can be fooled); a file shorter than its header says (ModelTruncatedError); contents that do not match the checksum
(ModelCorruptError); a higher version (ModelVersionError). Sizes are checked against the file's length before anything
of that size is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import tempfile
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
from ccq_core.features import MAX_ABS, Float32
from ccq_core.preprocessing import array_shapes, check_steps
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
    header = _read_header(data)
    try:
        arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelFormatError(f"not a readable safetensors file: {error}") from None
    if not _is_hex(header.get("checksum")) or _checksum(header, arrays) != header["checksum"]:
        raise ModelCorruptError("the checksum does not match the contents: the file was damaged; fetch it again")
    try:
        return _contents(header, arrays)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ModelFormatError(f"the header does not describe a model: {type(error).__name__}: {error}") from None


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that a crash leaves either the old or the new one: temporary name, fsync, rename, fsync."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp makes it private; give it what open() would have
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


def _header_length(head: bytes, size: int) -> int:
    if size < 8:
        raise ModelTruncatedError(f"the file has {size} bytes, fewer than the 8 that a model file starts with")
    length: int = struct.unpack("<Q", head[:8])[0]
    if length > _MAX_HEADER:
        raise ModelFormatError(f"no CCQ model: it starts with {head[:8]!r}, not with a safetensors header")
    if 8 + length > size:
        raise ModelTruncatedError(f"the file ends at byte {size}, inside its header of {length} bytes")
    return length


def _read_header(data: bytes) -> dict[str, Any]:
    """The JSON under the metadata key, once the file is known to be whole and of a version that can be read."""
    length = _header_length(data[:8], len(data))
    try:
        outer = json.loads(data[8 : 8 + length])
        metadata = outer.pop("__metadata__", None)
        end = max((int(entry["data_offsets"][1]) for entry in outer.values()), default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ModelFormatError(f"no CCQ model: the safetensors header is not valid ({type(error).__name__})") from None
    if 8 + length + end > len(data):
        raise ModelTruncatedError(f"the file has {len(data)} bytes, its header announces {8 + length + end}")
    if not isinstance(metadata, dict) or not isinstance(metadata.get(_KEY), str):
        raise ModelFormatError(f"a safetensors file, but no CCQ model: it has no {_KEY!r} metadata")
    try:
        header = json.loads(metadata[_KEY])
    except (ValueError, RecursionError):
        raise ModelCorruptError("the model header is damaged: not valid JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFormatError(f"a safetensors file, but no CCQ model: its format is not {FORMAT!r}")
    version = header.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFormatError(f"version: expected a positive integer, got {version!r}")
    if version > VERSION:
        raise ModelVersionError(
            f"the file has format version {version}, this package reads up to {VERSION}: upgrade ccq-search"
        )
    return header


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

    parameters = header["parameters"]
    m = parameters["bits"] // 8
    books = arrays["codebooks"]
    if books.ndim != 3 or not 1 <= m <= 16 or parameters["bits"] % 8:
        raise ModelFormatError(f"codebooks: expected shape (M, {K}, D) with M = bits / 8, got {books.shape}")
    dim = int(books.shape[2])
    # Latent vectors stay below MAX_ABS as well, so that no distance overflows.
    codebooks = take("codebooks", (m, K, dim), MAX_ABS)
    norm_levels = take("norm_levels", (K,), MAX_ABS**2)
    if (np.diff(norm_levels) < 0).any() or norm_levels[0] < 0:
        raise ModelFormatError("norm_levels: expected ascending numbers from 0 up")
    modalities = []
    for i, entry in enumerate(header["modalities"]):
        name, size, weight = entry["name"], entry["dim"], float(entry["weight"])
        if not isinstance(name, str) or not isinstance(size, int) or size < 1 or not 0 < weight < math.inf:
            raise ModelFormatError(f"modality {i}: expected a name, a dimension and a positive weight, got {entry}")
        try:
            steps = check_steps(entry["steps"])
        except InvalidInputError as error:
            raise ModelFormatError(str(error)) from None
        mapping = take(f"mapping.{i}", (size, dim))
        step_arrays = tuple(
            {part: take(f"step.{i}.{j}.{part}", shape) for part, shape in array_shapes(step, size).items()}
            for j, step in enumerate(steps)
        )
        modalities.append(ModalityContents(name, size, weight, steps, step_arrays, mapping))
    names = [modality.name for modality in modalities]
    if not names or len(set(names)) != len(names):
        raise ModelFormatError(f"modalities: expected distinct names, got {names}")
    if arrays:
        raise ModelFormatError(f"arrays that belong to no model: {', '.join(sorted(arrays))}")
    return Contents(parameters, modalities, codebooks, norm_levels, [float(loss) for loss in header["losses"]])


def _is_hex(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64
