"""Words as vectors, fitted on the training texts of one language. Needs numpy and the project only."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ccq_core.datasets.languages import ENGLISH, Language
from ccq_core.datasets.text import TextProjection, term_weights

DIMENSIONS = 128
SIGNATURE_WEIGHT = 0.2
"""How much of its own signature a word keeps: more finds rare words better, less groups related texts better."""
EQUAL = 1e-8
"""Singular values that differ by less, relative to the largest, count as equal."""

Floats = npt.NDArray[np.float64]


def fix_signs(directions: Floats) -> Floats:
    """Turn each row so that its entry of largest magnitude is positive: an SVD leaves the sign open."""
    peaks = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
    return np.asarray(directions * np.where(peaks < 0, -1.0, 1.0)[:, None])


def settle(values: Floats, directions: Floats) -> Floats:
    """The singular `directions` (R, T), those of equal `values` (R,) turned to where every machine finds them.

    An SVD leaves open the sign of a direction and the basis of directions of equal value, and texts like "pilot", "man
    pilot", "woman pilot" make such. The basis taken is the one whose products with fixed random vectors are triangular
    with a positive diagonal.
    """
    # The generator of RandomState is frozen by numpy's compatibility policy, unlike that of default_rng.
    fixed = np.random.RandomState(0).standard_normal((directions.shape[1], DIMENSIONS))
    settled = directions.copy()
    breaks = np.flatnonzero(-np.diff(values) > EQUAL * values[0]) + 1
    for rows in np.split(np.arange(len(values)), breaks):
        if len(rows) <= DIMENSIONS:
            q, r = np.linalg.qr(directions[rows] @ fixed[:, : len(rows)])
            settled[rows] = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T @ directions[rows]
    return settled


def signature(word: str) -> Floats:
    """A vector of length one that stands for `word` alone: signs read off a hash, (128,)."""
    digest = hashlib.blake2b(word.encode(), digest_size=DIMENSIONS // 8).digest()
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8)).astype(np.float64)
    return np.asarray((2.0 * bits - 1.0) / np.sqrt(DIMENSIONS))


def fit_text(texts: Sequence[str], train: npt.NDArray[np.bool_], language: Language = ENGLISH) -> TextProjection:
    """The projection of words: truncated SVD of the training texts' tf-idf, and each word's own signature.

    128 singular directions cannot tell 2,600 words apart: a word used once is all but lost in them. So a word's
    vector is its SVD row plus its signature times the length of what the SVD leaves out, times `SIGNATURE_WEIGHT`.
    A word of the held-out texts alone has its signature and the idf of a word never seen, or, if it is composed of
    words of the training texts, it is left to these: nothing of the held-out texts is fitted.
    """
    words = [language.tokenize(text) for text in texts]
    seen = {word for text, keep in zip(words, train, strict=True) if keep for word in text}
    vocabulary = sorted({part for text in words for word in text for part in language.parts(word, seen) or [word]})
    position = {word: column for column, word in enumerate(vocabulary)}
    table = np.zeros((int(train.sum()), len(vocabulary)))
    for row, text in enumerate(text for text, keep in zip(words, train, strict=True) if keep):
        for word, weight in term_weights(text).items():
            table[row, position[word]] = weight
    idf = np.log((1 + len(table)) / (1 + np.count_nonzero(table, axis=0))) + 1.0
    tfidf = table * idf
    tfidf /= np.linalg.norm(tfidf, axis=1, keepdims=True)
    signatures = np.stack([signature(word) for word in vocabulary])
    _, values, directions = np.linalg.svd(tfidf, full_matrices=False)
    if language is ENGLISH:  # `emoji.npz` was made so, and stays as it is
        directions = fix_signs(directions[:DIMENSIONS]).T
    else:
        used = table.any(axis=0)
        directions[:, used] = settle(values, directions[:, used])
        directions = directions[:DIMENSIONS].T
    left_out = np.sqrt(np.maximum(0.0, 1.0 - (directions**2).sum(axis=1, keepdims=True)))
    vectors = directions + SIGNATURE_WEIGHT * left_out * signatures
    scale = np.abs(vectors).max(axis=1) / 127.0
    return TextProjection(
        vocabulary=tuple(vocabulary),
        idf=idf.astype(np.float32),
        vectors=np.rint(vectors / scale[:, None]).astype(np.int8),
        scale=scale.astype(np.float32),
        language=language,
        spellings=() if language is ENGLISH else spellings(texts, vocabulary, language),
    )


def spellings(texts: Sequence[str], vocabulary: Sequence[str], language: Language) -> tuple[str, ...]:
    """How the `texts` write each word of `vocabulary` most often; the word itself where they only have it in others."""
    found: dict[str, Counter[str]] = {}
    for written in re.findall(r"\w+", " ".join(texts)):
        match language.tokenize(written):
            case [word]:
                found.setdefault(word, Counter())[written] += 1
    return tuple(found[word].most_common(1)[0][0] if word in found else word for word in vocabulary)


def quantize(rows: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """`rows` (n, P) as whole numbers from -127 to 127 and the length of one step of each row, (n,)."""
    steps = np.abs(rows).max(axis=1) / np.float32(127.0)
    return np.rint(rows / steps[:, None]).astype(np.int8), steps
