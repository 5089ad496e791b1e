"""Points to measure with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DIM = 64


def points(n: int, seed: int) -> NDArray[np.float32]:
    """(n, 64) float32: 200 clusters of one shared, uneven shape."""
    fixed, rng = np.random.default_rng(99), np.random.default_rng(seed)
    centres = fixed.standard_normal((200, DIM))
    shape = fixed.standard_normal((DIM, DIM)) / np.sqrt(DIM) * np.linspace(1.6, 0.2, DIM)[:, None]
    x = 0.7 * centres[rng.integers(0, 200, n)] + rng.standard_normal((n, DIM)) @ shape
    return np.asarray(x, dtype=np.float32)
