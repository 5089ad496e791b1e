"""Short texts as vectors: the words of a language and a stored linear projection. Needs numpy only."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from ccq_core.datasets.languages import ENGLISH, Language

# To look for words that are near takes milliseconds for each: so many are looked at, and no longer ones.
_MOST_NEAR = 8
_LONGEST_NEAR = 40


class UnknownWordsError(ValueError):
    """A text has no word that is known.

    Attributes
    ----------
    row:
        Which of the texts.
    reason:
        What it is, and what are the nearest words that are known.
    """

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"texts[{row}]: {reason}")
        self.row = row
        self.reason = reason


def term_weights(words: Iterable[str]) -> dict[str, float]:
    """The distinct `words`, in order, each with its weight 1 + ln(number of occurrences)."""
    return {word: 1.0 + float(np.log(count)) for word, count in Counter(words).items()}


@dataclass(frozen=True)
class TextProjection:
    """A linear map from words to a text feature: the weighted sum of word vectors, scaled to length one.

    A text is taken apart by the tokeniser of its language; where the language composes words, an unknown word counts
    as the known words that it is composed of. With weights w (see `term_weights`) the text becomes
    sum_t w_t idf_t scale_t vectors_t, divided by its norm.
    """

    vocabulary: tuple[str, ...]
    """The known words, as the language's tokeniser returns them, sorted; T of them."""
    idf: npt.NDArray[np.float32]
    """Inverse document frequency of each word, (T,) float32."""
    vectors: npt.NDArray[np.int8]
    """Direction of each word in feature space, (T, P) int8; the largest magnitude of a row is 127."""
    scale: npt.NDArray[np.float32]
    """Length of one step of each row of `vectors`, (T,) float32."""
    language: Language = ENGLISH
    """Where its words come from."""
    spellings: tuple[str, ...] = ()
    """How people write each word, (T,), where `vocabulary` holds stems; empty: as it stands there."""

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {word: position for position, word in enumerate(self.vocabulary)}

    def known(self, text: str) -> list[str]:
        """The distinct words of `text` that are in the vocabulary, in order of first occurrence."""
        return list(self._weights(text))

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Text features of `texts`, (q, P) float32, rows of length one.

        Unknown words are passed over; a text without any known word is an UnknownWordsError that names the text and
        offers the nearest known words.
        """
        if isinstance(texts, str):
            raise TypeError(f"texts: expected a sequence of strings, got one string; pass [{texts!r}]")
        rows = np.empty((len(texts), self.vectors.shape[1]), dtype=np.float32)
        for number, text in enumerate(texts):
            rows[number] = self._embed_one(text, number)
        return rows

    def _embed_one(self, text: str, number: int) -> npt.NDArray[np.float32]:
        weights = self._weights(text)
        if not weights:
            raise UnknownWordsError(number, f"no known word in {text!r}{self._suggestion(text)}")
        positions = [self._positions[word] for word in weights]
        factors = np.array(list(weights.values())) * self.idf[positions] * self.scale[positions]
        row = factors @ self.vectors[positions].astype(np.float64)
        return np.asarray(row / np.linalg.norm(row), dtype=np.float32)

    def _weights(self, text: str) -> dict[str, float]:
        words = self.language.tokenize(text)
        return term_weights(part for word in words for part in self.language.parts(word, self._positions))

    def _suggestion(self, text: str) -> str:
        near: list[str] = []
        words = (word for word in self.language.tokenize(text) if len(word) <= _LONGEST_NEAR)
        for word in islice(words, _MOST_NEAR):
            near += difflib.get_close_matches(word, self.vocabulary, n=3, cutoff=0.6)
        if not near:
            return f"; the vocabulary has {len(self.vocabulary)} {self.language.name} words"
        spellings = self.spellings or self.vocabulary
        offered = dict.fromkeys(spellings[self._positions[word]] for word in near)
        return "; did you mean " + " or ".join(repr(word) for word in offered) + "?"
