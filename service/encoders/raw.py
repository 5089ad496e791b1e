"""Raw values in requests, texts and images, in whose place come the features that a collection's encoders make."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from service.encoders.interface import ValueRefusedError
from service.encoders.named import Encoders, NamedEncoder
from service.errors import Fault, UnencodableError
from service.places import Location, shorten

TEXT, FILE = "text", "base64"
"""Keys of raw values: ``{"text": "a red car"}``, and ``{"base64": "/9j/4AAQ..."}`` of the bytes of an image file."""
_LONG = 64  # no text of so many characters happens to be base64

Objects = Sequence[Mapping[str, Any]]


def has_raw(objects: Iterable[Mapping[str, Any]], encoders: Encoders) -> bool:
    """Whether any of some objects has a raw value under a modality that has an encoder."""
    return any(
        modality in given and _is_raw(given[modality], encoder)
        for given in objects
        for modality, encoder in encoders.items()
    )


def encode_raw(objects: Objects, locate: Callable[[int], Location], encoders: Encoders) -> Objects:
    """The objects, with features (P,) float32 in the place of raw values.

    Parameters
    ----------
    objects:
        For each object its features, or raw values, by modality.
    locate:
        From an object's number to the place of these in the request.
    encoders:
        By modality. What has none is left as it is.

    Raises
    ------
    UnencodableError
        A value is not what its encoder takes, or cannot be encoded.
    EncoderFailedError, RequestTimeoutError
        From the encoder.
    """
    if not encoders:
        return objects
    made: dict[int, dict[str, Any]] = {}
    for modality, encoder in encoders.items():
        rows = [i for i, given in enumerate(objects) if modality in given and _is_raw(given[modality], encoder)]
        if not rows:
            continue
        try:
            values = [_value(row, objects[i][modality], encoder) for row, i in enumerate(rows)]
            features = encoder.encode(values)
        except ValueRefusedError as error:
            place = (*locate(rows[error.row]), modality)
            reason = f"{error.reason} (encoder {encoder.name})"
            raise UnencodableError.from_faults([Fault.at(place, reason)]) from None
        for i, row_features in zip(rows, features, strict=True):
            made.setdefault(i, dict(objects[i]))[modality] = row_features
    return [made.get(i, given) for i, given in enumerate(objects)] if made else objects


def _is_raw(value: Any, encoder: NamedEncoder) -> bool:
    """Whether a value is for the encoder, as all objects are, and strings that do not look like features."""
    if isinstance(value, dict):
        return True
    return isinstance(value, str) and encoder.takes != "image" and not _looks_like_features(value, encoder.dim)


def _looks_like_features(text: str, dim: int) -> bool:
    """Whether a string is base64 of a vector; or so long that it is no text, but base64 of a wrong one."""
    try:
        size = len(binascii.a2b_base64(text, strict_mode=True))
    except (binascii.Error, ValueError):
        return False
    return size == 4 * dim or len(text) >= _LONG


def _value(row: int, value: Any, encoder: NamedEncoder) -> str | bytes:
    """What the encoder is given for a raw value; ValueRefusedError if it is none that it takes."""
    if encoder.takes == "anything":  # it fails anyway
        return b""
    if isinstance(value, str):
        return value
    key = TEXT if encoder.takes == "text" else FILE
    given = value.get(key)
    if len(value) != 1 or not isinstance(given, str):
        example = "a text" if key == TEXT else "base64 of an image file"
        raise ValueRefusedError(row, f'expected features or {{"{key}": {example}}}, got {shorten(value)}')
    if key == TEXT:
        return given
    try:
        return binascii.a2b_base64(given, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise ValueRefusedError(row, f"expected base64 of an image file, got {shorten(given)}: {error}") from None
