"""The encoder of the emoji data set: words as features in the space of its descriptions. Needs no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ccq_core.datasets import load_emoji
from ccq_core.datasets.languages import ENGLISH
from ccq_core.datasets.text import TextProjection, UnknownWordsError
from ccq_core.features import Float32
from service.encoders.interface import Surroundings, Takes, ValueRefusedError
from service.encoders.options import Options, read_options


class EmojiOptions(Options):
    """`language`: `en`, or another of the data set."""

    language: str = ENGLISH.code


class EmojiEncoder:
    """Projects words; see `ccq_core.datasets.text.TextProjection`."""

    takes: Takes = "text"

    def __init__(self, projection: TextProjection) -> None:
        self.dim: int = projection.vectors.shape[1]
        self._projection = projection

    def encode(self, values: Sequence[str]) -> Float32:
        """See `service.encoders.interface.Encoder`."""
        try:
            return self._projection.embed(values)
        except UnknownWordsError as error:
            raise ValueRefusedError(error.row, error.reason) from None


def make(options: Mapping[str, Any], surroundings: Surroundings) -> EmojiEncoder:  # noqa: ARG001 (as all kinds)
    """An encoder from its options; ValueError if there is no such language."""
    language = read_options(options, EmojiOptions).language
    if language == ENGLISH.code:
        return EmojiEncoder(load_emoji().projection)
    return EmojiEncoder(load_emoji(languages=[language]).translation_projections[language])
