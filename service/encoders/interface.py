"""What an encoder is: the interface of those that come with this package, and of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from ccq_core.features import Float32

Takes = Literal["text", "image"]
"""What an encoder takes: strings, or the bytes of image files."""


class ValueRefusedError(ValueError):
    """A value cannot be encoded, and that is the client's matter; any other exception is the server's.

    Parameters
    ----------
    row:
        Which value, of those that were given.
    reason:
        What was expected and what was got, for the client.
    """

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"value {row}: {reason}")
        self.row = row
        self.reason = reason


class Encoder(Protocol):
    """Makes features of raw values. Threads use it at the same time."""

    @property
    def takes(self) -> Takes:
        """What `encode` is given."""

    @property
    def dim(self) -> int:
        """Length P of the features."""

    def encode(self, values: Sequence[Any]) -> Float32:
        """Features (n, P) float32, finite, of n strings, or of the bytes of n image files; n is at least 1.

        Raises
        ------
        ValueRefusedError
            One of the values cannot be encoded.
        """


@dataclass(frozen=True)
class Surroundings:
    """What an encoder is made in.

    Attributes
    ----------
    folder:
        That of the file of encoders; paths in it are relative to it.
    max_image_pixels:
        Width times height of the largest image that may be unpacked.
    """

    folder: Path
    max_image_pixels: int


EncoderKind = Callable[[Mapping[str, Any], Surroundings], Encoder]
"""Makes an encoder from its options in the file of encoders. What it raises keeps the server from starting, and its
message is told: what was expected and what was got."""
