"""The optimiser Adam."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.rivals.standardize import Float64


class Adam:
    """D. P. Kingma, J. Ba: Adam, a method for stochastic optimization. ICLR 2015; its Algorithm 1.

    Parameters
    ----------
    parameters:
        Arrays, changed in place by `step`.
    rate:
        Step size.
    """

    def __init__(self, parameters: Sequence[Float64], rate: float) -> None:
        self._parameters = parameters
        self._rate = rate
        self._first = [np.zeros_like(array) for array in parameters]
        self._second = [np.zeros_like(array) for array in parameters]
        self._steps = 0

    def step(self, gradients: Sequence[Float64]) -> None:
        """One step against the gradients, given in the order of the parameters."""
        self._steps += 1
        rate = self._rate * np.sqrt(1 - 0.999**self._steps) / (1 - 0.9**self._steps)
        for array, first, second, gradient in zip(self._parameters, self._first, self._second, gradients, strict=True):
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            array -= rate * first / (np.sqrt(second) + 1e-8)
