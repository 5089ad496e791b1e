"""Synthetic image-text pairs of any number and dimension, made in pieces: the same rows whatever the pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
MODALITIES = ("image", "text")
CLASSES = 10
_LATENT = 32
_BLOCK = 10_000


@dataclass(frozen=True)
class SyntheticPairs:
    """Pairs as noisy linear views of points around ten centres.

    Attributes
    ----------
    n:
        How many.
    dims:
        Dimensions of image and text.
    seed:
        Of the points; the views are always the same.
    """

    n: int
    dims: tuple[int, int]
    seed: int = 0

    def blocks(self) -> Iterator[tuple[dict[str, Float32], NDArray[np.int64]]]:
        """Features and labels of all pairs, some thousands at a time."""
        for start in range(0, self.n, _BLOCK):
            yield self._block(start // _BLOCK)

    def features(self, lo: int, hi: int) -> dict[str, Float32]:
        """Features of pairs lo to hi."""
        first = lo // _BLOCK
        parts = [self._block(block)[0] for block in range(first, -(-hi // _BLOCK))]
        offset = first * _BLOCK
        return {name: np.concatenate([part[name] for part in parts])[lo - offset : hi - offset] for name in MODALITIES}

    def _block(self, number: int) -> tuple[dict[str, Float32], NDArray[np.int64]]:
        views = np.random.default_rng(12345)
        centres = 1.5 * views.standard_normal((CLASSES, _LATENT), dtype=np.float32)
        rng = np.random.default_rng((self.seed, number))
        labels = rng.integers(0, CLASSES, _BLOCK)
        z = centres[labels] + rng.standard_normal((_BLOCK, _LATENT), dtype=np.float32)
        features: dict[str, Float32] = {}
        for name, dim in zip(MODALITIES, self.dims, strict=True):
            view = views.standard_normal((_LATENT, dim), dtype=np.float32)
            features[name] = np.asarray(z @ view + rng.standard_normal((_BLOCK, dim), dtype=np.float32))
        rows = slice(0, min(_BLOCK, self.n - number * _BLOCK))
        return {name: array[rows] for name, array in features.items()}, labels[rows]


@dataclass(frozen=True)
class PairsOnDisk:
    """Pairs as raw float32 files, read without mapping them, so that only what is read counts as memory.

    Iterated, batches of `batch` pairs, each time from the start.
    """

    folder: Path
    n: int
    dims: tuple[int, int]
    batch: int = 10_000

    def write(self) -> None:
        """Make the files from `SyntheticPairs`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = {name: self._path(name).open("wb") for name in (*MODALITIES, "label")}
        try:
            for features, labels in SyntheticPairs(self.n, self.dims).blocks():
                for name in MODALITIES:
                    features[name].tofile(files[name])
                labels.tofile(files["label"])
        finally:
            for file in files.values():
                file.close()

    def __iter__(self) -> Iterator[dict[str, Float32]]:
        for lo in range(0, self.n, self.batch):
            yield self.features(lo, min(self.n, lo + self.batch))

    def features(self, lo: int, hi: int) -> dict[str, Float32]:
        """Features of pairs lo to hi."""
        return {
            name: np.fromfile(self._path(name), dtype=np.float32, count=(hi - lo) * dim, offset=4 * lo * dim).reshape(
                hi - lo, dim
            )
            for name, dim in zip(MODALITIES, self.dims, strict=True)
        }

    def labels(self) -> NDArray[np.int64]:
        """(n,) the centre of each pair."""
        return np.fromfile(self._path("label"), dtype=np.int64)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.raw"
