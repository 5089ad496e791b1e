"""Small data with structure: two modalities that are noisy linear views of one latent vector."""

from __future__ import annotations

import numpy as np
import pytest

from ccq_core import CCQ


def make_pairs(n: int, seed: int = 0, dims: tuple[int, ...] = (12, 8), latent: int = 5) -> dict[str, np.ndarray]:
    """n objects in len(dims) modalities, called image, text, audio, ..."""
    maps = np.random.default_rng(1234)
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, latent))
    return {
        name: (z @ maps.standard_normal((latent, p)) + 0.3 * rng.standard_normal((n, p)) + 2.0).astype(np.float32)
        for name, p in zip(("image", "text", "audio"), dims, strict=False)
    }


@pytest.fixture(scope="session")
def pairs() -> dict[str, np.ndarray]:
    return make_pairs(600)


@pytest.fixture(scope="session")
def model(pairs) -> CCQ:
    return CCQ(bits=16, seed=3).fit(pairs)
