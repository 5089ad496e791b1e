"""More objects than Wiki has, drawn from its training rows.

The paper's semi-paired experiment needs tens of thousands of objects, which it takes from NUS-WIDE and Flickr1M. Where
neither can be had, objects are made: an origin is picked among the training rows, and both of its features are drawn
anew, independently of each other.

- Image. A row is a histogram of visual words: counts over their total, which can be read off the row itself, since all
  its entries are multiples of the smallest (111 to 1,332 words, 936 in the median row). A new row is a multinomial
  sample of `WORDS` words from it, over `WORDS`: a bootstrap of the picture's local features.
- Text. A row is a posterior over ten topics. A new row is drawn from the Dirichlet distribution with that mean and the
  concentration `CONCENTRATION`.

Both numbers follow one rule: a new object is about as far from its origin as real objects are from their nearest
neighbour among the training rows. A histogram p of w words drawn anew lies, on average, (1 - |p|^2) / w from p in
squared distance, and 1 - |p|^2 is .97 in the median row: images are spread over many words (1 / |p|^2 is 35 of 128), so
nothing but w decides. The median squared distance to the nearest neighbour is .0107, which is 91 words, rounded to 100.
With all 936 words a new image would lie at a tenth of that, a copy in all but name. The same for texts: (1 - |t|^2) /
(a + 1), with 1 - |t|^2 = .785 and a nearest neighbour at .00285, gives a = 275, rounded to 300.

What this cannot give: new content. All objects of one origin are near duplicates of each other and of the origin, and
there are no more origins than training rows. So no origin is a test row; pairs take every origin once before any is
taken twice; and curves beyond 2,173 pairs show what more noise on the same pairs is worth, not what new pairs are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.files import Arrays

WORDS = 100
CONCENTRATION = 300.0


def draw_origins(rows: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) rows to draw from, each of `rows` once in random order before any is taken again.

    The first of n origins are the origins of a smaller n with the same generator.
    """
    rounds = [rng.permutation(rows) for _ in range(-(-n // rows))]
    return np.concatenate(rounds)[:n].astype(np.int64) if rounds else np.empty(0, dtype=np.int64)


def resample_images(
    histograms: NDArray[Any], origins: NDArray[np.int64], rng: np.random.Generator, words: int = WORDS
) -> NDArray[np.float64]:
    """Histograms (n, P), rows that sum to one, of `words` visual words drawn from the rows `origins` (n,).

    Raises
    ------
    ValueError
        A row that is no histogram.
    """
    p = _distributions("image", histograms)
    counts = np.asarray(rng.multinomial(words, p[origins]))
    return np.asarray(counts / words)


def resample_texts(
    posteriors: NDArray[Any],
    origins: NDArray[np.int64],
    rng: np.random.Generator,
    concentration: float = CONCENTRATION,
) -> NDArray[np.float64]:
    """Topic posteriors (n, P), rows that sum to one, from the Dirichlet around the rows `origins` (n,).

    Raises
    ------
    ValueError
        A row that is no distribution.
    """
    drawn = rng.standard_gamma(concentration * _distributions("text", posteriors)[origins])
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def _distributions(name: str, rows: NDArray[Any]) -> NDArray[np.float64]:
    p = np.asarray(rows, dtype=np.float64)
    sums = p.sum(axis=1)
    bad = (p < 0).any(axis=1) | (np.abs(sums - 1) > 1e-3)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"{name}: row {row} is no distribution (sum {sums[row]:g}); only histograms and posteriors can be resampled"
        )
    return np.asarray(p / sums[:, None])


def semi_paired(train: Arrays, pairs: int, unpaired: int, seed: int) -> Arrays:
    """Training features: `pairs` objects with both modalities, `unpaired` without text, `unpaired` without image.

    Parameters
    ----------
    train:
        ``image`` histograms and ``text`` posteriors of the origins, row by row.
    pairs, unpaired:
        How many objects.
    seed:
        The same seed gives the same unpaired objects for every number of pairs, and pairs that begin alike.

    Returns
    -------
    ``image`` and ``text``, (pairs + 2 unpaired, P) float64, a row of NaN where an object lacks the modality.
    """
    image, text = train["image"], train["text"]
    kinds = ("origins", "images", "texts", "unpaired images", "unpaired texts")
    streams = dict(zip(kinds, np.random.default_rng(seed).spawn(len(kinds)), strict=True))
    origins = draw_origins(len(image), pairs, streams["origins"])
    lone_images = draw_origins(len(image), unpaired, streams["unpaired images"])
    lone_texts = draw_origins(len(text), unpaired, streams["unpaired texts"])
    no_image, no_text = np.full((unpaired, image.shape[1]), np.nan), np.full((unpaired, text.shape[1]), np.nan)
    return {
        "image": np.concatenate(
            [
                resample_images(image, origins, streams["images"]),
                resample_images(image, lone_images, streams["unpaired images"]),
                no_image,
            ]
        ),
        "text": np.concatenate(
            [
                resample_texts(text, origins, streams["texts"]),
                no_text,
                resample_texts(text, lone_texts, streams["unpaired texts"]),
            ]
        ),
    }
