"""Short English texts as vectors: a small tokeniser and a stored linear projection. Needs numpy only."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

STOP_WORDS = frozenset(
    ["a", "an", "and", "at", "by", "for", "from", "in", "into", "of", "on", "or", "out", "the", "to", "with"]
)
"""Words that say how the others hang together, not what is meant; `tokenize` drops them."""

_IRREGULAR = {
    "aries": "aries",
    "bahamas": "bahamas",
    "barbados": "barbados",
    "buses": "bus",
    "calves": "calf",
    "canoes": "canoe",
    "children": "child",
    "christmas": "christmas",
    "cookies": "cookie",
    "feet": "foot",
    "geese": "goose",
    "genies": "genie",
    "halves": "half",
    "headaches": "headache",
    "honduras": "honduras",
    "knives": "knife",
    "laos": "laos",
    "leaves": "leaf",
    "lens": "lens",
    "lenses": "lens",
    "loaves": "loaf",
    "men": "man",
    "mice": "mouse",
    "movies": "movie",
    "news": "news",
    "octopuses": "octopus",
    "people": "person",
    "pies": "pie",
    "pisces": "pisces",
    "rhinoceros": "rhinoceros",
    "rhinoceroses": "rhinoceros",
    "scarves": "scarf",
    "selfies": "selfie",
    "shoes": "shoe",
    "shorts": "shorts",
    "teeth": "tooth",
    "ties": "tie",
    "toes": "toe",
    "wales": "wales",
    "walruses": "walrus",
    "wolves": "wolf",
    "women": "woman",
    "zombies": "zombie",
}

_APOSTROPHES = re.compile(r"['\u2018\u2019]")
_INITIALS = re.compile(r"(?<=\b[^\W\d_])\.(?=[^\W\d_]\b)")  # the inner dots of "U.S." and "S.O.S."
_TOKENS = re.compile(r"[#*]|\w+")


def singular(word: str) -> str:
    """The singular of a lower-case English noun, by rule and a short list of exceptions.

    It is also applied to words that are not nouns: what counts is that a query and a text are treated alike.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def tokenize(text: str) -> list[str]:
    """The words of `text`, normalised, in order.

    Case, accents and apostrophes go, other punctuation separates words (`#` and `*`, which are on keys, are words),
    dots inside initials go (`U.S.` is `us`), `STOP_WORDS` go, and plurals become singulars.
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c)).replace("_", " ")
    plain = _INITIALS.sub("", _APOSTROPHES.sub("", plain))
    return [singular(word) for word in _TOKENS.findall(plain) if word not in STOP_WORDS]


def term_weights(text: str) -> dict[str, float]:
    """The words of `text`, each with its weight 1 + ln(number of occurrences)."""
    return {word: 1.0 + float(np.log(count)) for word, count in Counter(tokenize(text)).items()}


@dataclass(frozen=True)
class TextProjection:
    """A linear map from words to a text feature: the weighted sum of word vectors, scaled to length one.

    A text with weights w (see `term_weights`) becomes sum_t w_t idf_t scale_t vectors_t, divided by its norm.
    """

    vocabulary: tuple[str, ...]
    """The known words, as `tokenize` returns them, sorted; T of them."""
    idf: npt.NDArray[np.float32]
    """Inverse document frequency of each word, (T,) float32."""
    vectors: npt.NDArray[np.int8]
    """Direction of each word in feature space, (T, P) int8; the largest magnitude of a row is 127."""
    scale: npt.NDArray[np.float32]
    """Length of one step of each row of `vectors`, (T,) float32."""

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {word: position for position, word in enumerate(self.vocabulary)}

    def known(self, text: str) -> list[str]:
        """The distinct words of `text` that are in the vocabulary, in order of first occurrence."""
        return [word for word in term_weights(text) if word in self._positions]

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Text features of `texts`, (q, P) float32, rows of length one.

        Unknown words are passed over; a text without any known word is a ValueError that names the text and
        offers the nearest known words.
        """
        if isinstance(texts, str):
            raise TypeError(f"texts: expected a sequence of strings, got one string; pass [{texts!r}]")
        rows = np.empty((len(texts), self.vectors.shape[1]), dtype=np.float32)
        for number, text in enumerate(texts):
            rows[number] = self._embed_one(text, number)
        return rows

    def _embed_one(self, text: str, number: int) -> npt.NDArray[np.float32]:
        weights = {word: weight for word, weight in term_weights(text).items() if word in self._positions}
        if not weights:
            raise ValueError(f"texts[{number}]: no known word in {text!r}{self._suggestion(text)}")
        positions = [self._positions[word] for word in weights]
        factors = np.array(list(weights.values())) * self.idf[positions] * self.scale[positions]
        row = factors @ self.vectors[positions].astype(np.float64)
        return np.asarray(row / np.linalg.norm(row), dtype=np.float32)

    def _suggestion(self, text: str) -> str:
        near: list[str] = []
        for word in tokenize(text):
            near += difflib.get_close_matches(word, self.vocabulary, n=3, cutoff=0.6)
        if not near:
            return f"; the vocabulary has {len(self.vocabulary)} English words"
        return "; did you mean " + " or ".join(repr(word) for word in dict.fromkeys(near)) + "?"
