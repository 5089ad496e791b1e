"""NUS-WIDE: 269,648 Flickr images with tags and 81 concepts (Chua et al., CIVR 2009).

Read are, wherever below the folder they are:

- `BoW_int.dat`: a line per image, the counts of 500 visual words;
- `AllTags1k.txt`: a line per image, 0 or 1 for each of 1,000 tags;
- `Labels_CONCEPT.txt` for each concept, in `Groundtruth/AllLabels`: a line per image, 0 or 1.

All have their lines in the same order. As in the paper, pairs that show none of the 21 most frequent concepts are
left out, which should leave 195,834, and 2,000 of the others become queries. The paper trains on 10,000 pairs of the
database (`training_sample`) and takes a PCA of the tags; here they stay as they are, for whitening is among the steps
of `CCQ`. Relevance is by the 21 concepts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.split import one_file, split
from ccq_core.evaluation import LabelledData

WORDS, TAGS, CONCEPTS, KEPT = 500, 1000, 81, 21
QUERIES = 2_000


def load_nus_wide(
    folder: Path,
    *,
    queries: int = QUERIES,
    seed: int = 0,
    words: int = WORDS,
    tags: int = TAGS,
    concepts: int = CONCEPTS,
    kept: int = KEPT,
) -> LabelledData:
    """Read the published files.

    Parameters
    ----------
    folder:
        Where they are.
    queries:
        How many pairs become queries; all others are the database.
    seed:
        Draws the queries.
    words, tags, concepts:
        Columns and files to expect; other numbers than the published ones are for tests.
    kept:
        The so many most frequent concepts are the labels, and pairs with none of them are left out.

    Returns
    -------
    `image` (n, words) float32 counts, `text` (n, tags) float32 0/1, labels (n, kept) uint8, the most frequent concept
    first.

    Raises
    ------
    FileNotFoundError
        A file is missing or there twice.
    ValueError
        A file of another form, or files of different lengths.
    """
    image = read_table(one_file(folder, "BoW_int.dat"), words)
    text = read_table(one_file(folder, "AllTags1k.txt"), tags)
    labels = _labels(folder, concepts)
    if not len(image) == len(text) == len(labels):
        raise ValueError(
            f"{folder}: expected files of the same length, got {len(image):,} lines of BoW_int.dat, {len(text):,} of "
            f"AllTags1k.txt and {len(labels):,} of labels"
        )
    frequent = np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")[:kept]
    labels = labels[:, frequent]
    rows = labels.any(axis=1)
    return split({"image": image[rows], "text": text[rows]}, labels[rows], queries, seed)


def _labels(folder: Path, concepts: int) -> NDArray[np.uint8]:
    one_file(folder, "AllLabels")
    files = sorted(folder.rglob("AllLabels/Labels_*.txt"))
    if len(files) != concepts:
        raise FileNotFoundError(
            f"{folder}: expected {concepts} files AllLabels/Labels_CONCEPT.txt in it or below it, got {len(files)}"
        )
    columns = [read_table(path, 1)[:, 0] for path in files]
    for path, column in zip(files, columns, strict=True):
        if len(column) != len(columns[0]):
            raise ValueError(f"{path}: expected {len(columns[0]):,} lines, as in {files[0].name}, got {len(column):,}")
        if not np.isin(column, (0, 1)).all():
            raise ValueError(f"{path}: expected a 0 or 1 on each line")
    return np.stack(columns, axis=1).astype(np.uint8)


def read_table(path: Path, columns: int) -> NDArray[Any]:
    """Numbers between white space, (lines, columns) float32.

    Raises
    ------
    ValueError
        A line with other than `columns` numbers, or what is no number; names the file.
    """
    try:
        table = np.loadtxt(path, dtype=np.float32, ndmin=2, comments=None)
    except ValueError as error:
        raise ValueError(f"{path}: not a table of numbers ({error})") from None
    if table.shape[1] != columns:
        raise ValueError(f"{path}: expected {columns:,} numbers a line, got {table.shape[1]:,}")
    return table
