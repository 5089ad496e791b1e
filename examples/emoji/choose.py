"""How the rules of `ccq_core/datasets/languages.py` were chosen: MAP@50 in five-fold cross-validation on training rows.

    python examples/emoji/choose.py

Fitted on four fifths of the training texts, queries from the fifth, text to text. A few minutes.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ccq_core.datasets import load_emoji  # noqa: E402
from ccq_core.datasets.languages import ENGLISH, GERMAN, JAPANESE, Language  # noqa: E402
from ccq_core.metrics import mean_average_precision  # noqa: E402
from examples.emoji.words import fit_text  # noqa: E402

FOLDS = 5
DEPTH = 50

Tokenizer = Callable[[str], list[str]]


def as_they_stand(text: str) -> list[str]:
    """Words without anything but case and width folded."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def grams(words: Tokenizer, *lengths: int, edge: str = "") -> Tokenizer:
    """All sequences of so many characters in the words, which begin and end with `edge`."""

    def tokenize(text: str) -> list[str]:
        marked = [f"{edge}{word}{edge}" for word in words(text)]
        return [word[i : i + n] for word in marked for n in lengths for i in range(max(1, len(word) - n + 1))]

    return tokenize


def both(*tokenizers: Tokenizer) -> Tokenizer:
    """What several tokenisers return, one after the other."""
    return lambda text: [word for tokenize in tokenizers for word in tokenize(text)]


RULES: list[tuple[str, Language]] = [
    ("English as it is", ENGLISH),
    ("German: words as they stand", Language("de", "German", as_they_stand)),
    ("German: 4-grams", Language("de", "German", grams(as_they_stand, 4, edge="_"))),
    ("German: stems", replace(GERMAN, joints=())),
    ("German: stems, unknown compounds taken apart", GERMAN),
    (
        "German: stems and their 4-grams",
        Language("de", "German", both(GERMAN.tokenize, grams(GERMAN.tokenize, 4, edge="_"))),
    ),
    ("Japanese: words as they stand", Language("ja", "Japanese", as_they_stand)),
    ("Japanese: single characters", Language("ja", "Japanese", grams(as_they_stand, 1))),
    ("Japanese: pairs of characters", Language("ja", "Japanese", grams(as_they_stand, 2))),
    ("Japanese: single characters and pairs", Language("ja", "Japanese", grams(as_they_stand, 1, 2))),
    ("Japanese: runs, kanji in pairs", replace(JAPANESE, joints=())),
    ("Japanese: the same, unknown runs taken apart", JAPANESE),
    ("Japanese: the same, into parts of one character", replace(JAPANESE, shortest_part=1)),
]


def main() -> None:
    """Print the quality of every rule."""
    train = load_emoji(["de", "ja"]).train
    fold = np.random.RandomState(7).permutation(len(train)) % FOLDS
    for name, language in RULES:
        texts = train.texts if language is ENGLISH else train.translations[language.code].texts
        scores, sizes = [], []
        for number in range(FOLDS):
            kept = fold != number
            projection = fit_text(texts, kept, language)
            features = projection.embed(texts)
            ranking = np.argsort(-(features[~kept] @ features[kept].T), axis=1, kind="stable")[:, :DEPTH]
            relevant = train.labels[kept][ranking] == train.labels[~kept][:, None]
            scores.append(mean_average_precision(relevant))
            sizes.append(len(projection.vocabulary))
        print(f"{np.mean(scores):.3f} +- {np.std(scores) / FOLDS**0.5:.3f}  {max(sizes):6,} words  {name}", flush=True)


if __name__ == "__main__":
    main()
