"""Flickr1M: a million Flickr images with tags, of which 25,000 are the labelled MIR Flickr, as Srivastava and
Salakhutdinov preprocessed them (JMLR 2014).

Read are, in the folder:

- `image/labelled/combined-*.npy` and `image/unlabelled/combined-*.npy`: pieces of the features, (n_i, 3857) float32, in
  the order of their names;
- `text/text_all_2000_labelled.npz` and `text/text_all_2000_unlabelled.npz`: tags as sparse rows, (n, 2000), a file of
  `data`, `indices`, `indptr` and `shape`;
- `labels.npy`: (25000, 38) 0/1.

As in the paper, 1,000 labelled pairs become queries and 24,000 the database, and all 975,000 unlabelled pairs are for
training: 15 GB of images, so `unlabelled_pairs` reads them in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.data.split import read_array, read_arrays, split
from ccq_core.evaluation import LabelledData

FEATURES, TAGS, CONCEPTS = 3857, 2000, 38
QUERIES = 1_000
BATCH = 10_000


def load_flickr1m(
    folder: Path,
    *,
    queries: int = QUERIES,
    seed: int = 0,
    features: int = FEATURES,
    tags: int = TAGS,
    concepts: int = CONCEPTS,
) -> LabelledData:
    """Read the labelled pairs.

    Parameters
    ----------
    folder:
        Where the archive was unpacked: it holds `image`, `text` and `labels.npy`.
    queries:
        How many pairs become queries; all others are the database.
    seed:
        Draws the queries.
    features, tags, concepts:
        Columns to expect; other numbers than the published ones are for tests.

    Returns
    -------
    `image` (n, features) float32, `text` (n, tags) float32, which tags there are (0/1), labels (n, concepts) uint8.

    Raises
    ------
    FileNotFoundError
        A file is missing.
    ValueError
        A file of another form, or files of different lengths.
    """
    image = np.concatenate([np.asarray(piece, dtype=np.float32) for piece in _pieces(folder, "labelled", features)])
    text = _tags(folder, "labelled", tags).toarray()
    path = folder / "labels.npy"
    labels = np.asarray(read_array(path))
    if labels.ndim != 2 or labels.shape[1] != concepts or not np.isin(labels, (0, 1)).all():
        raise ValueError(f"{path}: expected shape (n, {concepts}) of 0 and 1, got {labels.shape} of {labels.dtype}")
    if not len(image) == len(text) == len(labels):
        raise ValueError(
            f"{folder}: expected as many images as texts and labels, got {len(image):,}, {len(text):,} and "
            f"{len(labels):,}"
        )
    return split({"image": image, "text": text}, labels.astype(np.uint8), queries, seed)


@dataclass(frozen=True)
class UnlabelledPairs:
    """Batches of pairs, `image` (b, P) float32 and `text` (b, T) float32 0/1, the same each time this is iterated.

    Attributes
    ----------
    images:
        Pieces of the images, mapped from disk.
    texts:
        Sparse tags.
    batch:
        Pairs per batch; the last of a piece has what is left of it.
    """

    images: Sequence[NDArray[np.float32]]
    texts: csr_array[np.float32, tuple[int, int]]
    batch: int = BATCH

    def __len__(self) -> int:
        return sum(map(len, self.images))

    def __iter__(self) -> Iterator[dict[str, NDArray[np.float32]]]:
        start = 0
        for piece in self.images:
            for lo in range(0, len(piece), self.batch):
                image = np.array(piece[lo : lo + self.batch], dtype=np.float32)
                yield {"image": image, "text": self.texts[start + lo : start + lo + len(image)].toarray()}
            start += len(piece)


def unlabelled_pairs(
    folder: Path, *, batch: int = BATCH, features: int = FEATURES, tags: int = TAGS
) -> UnlabelledPairs:
    """The unlabelled pairs, in batches; arguments and errors as those of `load_flickr1m`."""
    pairs = UnlabelledPairs(_pieces(folder, "unlabelled", features), _tags(folder, "unlabelled", tags), batch)
    if pairs.texts.shape[0] != len(pairs):
        raise ValueError(
            f"{folder}: expected as many unlabelled images as texts, got {len(pairs):,} and {pairs.texts.shape[0]:,}"
        )
    return pairs


def _pieces(folder: Path, kind: str, features: int) -> list[NDArray[np.float32]]:
    paths = sorted((folder / "image" / kind).glob("combined-*.npy"))
    if not paths:
        raise FileNotFoundError(f"{folder / 'image' / kind}: expected files combined-*.npy, got none")
    pieces = [read_array(path) for path in paths]
    for path, piece in zip(paths, pieces, strict=True):
        if piece.ndim != 2 or piece.shape[1] != features:
            raise ValueError(f"{path}: expected shape (n, {features}), got {piece.shape}")
    return pieces


def _tags(folder: Path, kind: str, tags: int) -> csr_array[np.float32, tuple[int, int]]:
    """Which tags there are: counts become 1."""
    path = folder / "text" / f"text_all_2000_{kind}.npz"
    arrays = read_arrays(path)
    lacking = {"data", "indices", "indptr", "shape"} - set(arrays)
    if lacking:
        raise ValueError(f"{path}: expected a sparse matrix, but array {min(lacking)!r} is missing")
    shape = tuple(arrays["shape"].tolist())
    if len(shape) != 2 or shape[1] != tags:
        raise ValueError(f"{path}: expected shape (n, {tags}), got {shape}")
    try:
        matrix = csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(shape[0], tags))
        matrix.check_format()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not a sparse matrix ({error})") from None
    return csr_array((matrix > 0).astype(np.float32))
