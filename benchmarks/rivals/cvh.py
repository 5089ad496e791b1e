"""Cross-View Hashing."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from benchmarks.rivals.base import Linear, Rival, Views
from benchmarks.rivals.directions import canonical, covariance, fill_bits
from benchmarks.rivals.standardize import Float64


class CVH(Rival):
    """S. Kumar, R. Udupa: Learning hash functions for cross-view similarity search. IJCAI 2011.

    The relaxed objective, for objects that are similar to nothing but themselves (W = I; the paper's Section 3.3), is
    the generalized eigenproblem

        [[0, C_12], [C_21, 0]] (a, b) = rho * diag(C_11 + ridge, C_22 + ridge) (a, b)

    that is, canonical correlation analysis. Bit i is sgn(a_i^T x) in one modality and sgn(b_i^T y) in the other.

    Parameters
    ----------
    ridge:
        Added to both covariances, in units of their mean eigenvalue.
    tolerance:
        A direction counts while its correlation is above this fraction of the largest.

    Attributes
    ----------
    correlations_:
        rho of each direction, (min(P_1, P_2),), descending.
    """

    supervised: ClassVar[bool] = False

    def __init__(
        self,
        bits: int = 32,
        *,
        seed: int = 0,
        preprocess: str = "zscore",
        ridge: float = 1e-6,
        tolerance: float = 1e-3,
    ) -> None:
        super().__init__(bits, seed=seed, preprocess=preprocess)
        self.ridge = ridge
        self.tolerance = tolerance

    def _train(
        self,
        views: Views,
        labels: Float64,  # noqa: ARG002, unsupervised
        rng: np.random.Generator,
    ) -> tuple[Linear, Linear]:
        x, y = views
        a, b, rho = canonical(x.T @ y / len(x), covariance(x, self.ridge), covariance(y, self.ridge))
        self.correlations_ = rho
        useful = max(1, int((rho > self.tolerance * rho[0]).sum()))
        a, b = fill_bits((a[:, :useful], b[:, :useful]), rho[:useful], self.bits, rng)
        return Linear(a, np.zeros(self.bits)), Linear(b, np.zeros(self.bits))
