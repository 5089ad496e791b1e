"""Correspondence autoencoder."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.rivals.adam import Adam
from benchmarks.rivals.base import Rival, Views
from benchmarks.rivals.standardize import Float64


@dataclass(frozen=True)
class Encoder:
    """The half of an autoencoder that makes codes, less their training medians.

    Attributes
    ----------
    layers:
        Weights (fan in, fan out) and biases (fan out,) of the two layers of tanh units.
    threshold:
        (bits,), subtracted.
    """

    layers: tuple[tuple[Float64, Float64], tuple[Float64, Float64]]
    threshold: Float64

    def __call__(self, x: Float64) -> Float64:
        """Map preprocessed features (n, P) to (n, bits)."""
        for weights, bias in self.layers:
            x = np.tanh(x @ weights + bias)
        return x - self.threshold


class CorrAE(Rival):
    """F. Feng, X. Wang, R. Li: Cross-modal retrieval with correspondence autoencoder. ACM Multimedia 2014.

    Two autoencoders whose codes f(x), g(y) of one object are pulled together (the paper's Equations 3 to 5):

        loss = (1 - alpha) (||x - x'||^2 + ||y - y'||^2) + alpha ||f(x) - g(y)||^2,     mean over objects

    x', y' being the reconstructions, each squared error a mean over its dimensions. The CCQ paper takes the signs of
    the codes as bits; the threshold here is the median over the training rows, which makes bits balanced.

    The paper leaves open, or does otherwise: inputs are standardised features instead of the hidden units of restricted
    Boltzmann machines trained beforehand; P -> hidden -> bits, tanh units, and linear reconstructions; Adam. alpha is
    the paper's for Wiki. Mean absolute difference to the CCQ paper there: .017.

    Parameters
    ----------
    alpha:
        Weight of the correspondence, between 0 and 1.
    hidden:
        Units between features and codes.
    epochs, batch, rate:
        Passes over the training rows, rows per step, and Adam's step size.
    decay:
        Squared-norm penalty on the weights.

    Attributes
    ----------
    losses_:
        Mean loss of each epoch, (epochs,).
    """

    supervised: ClassVar[bool] = False

    def __init__(
        self,
        bits: int = 32,
        *,
        seed: int = 0,
        preprocess: str = "zscore",
        alpha: float = 0.8,
        hidden: int = 128,
        epochs: int = 40,
        batch: int = 100,
        rate: float = 1e-3,
        decay: float = 1e-4,
    ) -> None:
        super().__init__(bits, seed=seed, preprocess=preprocess)
        self.alpha = alpha
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.decay = decay

    def _train(
        self,
        views: Views,
        labels: Float64,  # noqa: ARG002, unsupervised
        rng: np.random.Generator,
    ) -> tuple[Encoder, Encoder]:
        n = len(views[0])
        parameters = [_start(x.shape[1], self.hidden, self.bits, rng) for x in views]
        flat = [array for one in parameters for array in one]
        adam = Adam(flat, self.rate)
        self.losses_ = np.empty(self.epochs)
        for epoch in range(self.epochs):
            order = rng.permutation(n)
            total = 0.0
            for start in range(0, n, self.batch):
                rows = order[start : start + self.batch]
                loss, gradients = correspondence_loss((views[0][rows], views[1][rows]), parameters, self.alpha)
                total += loss * len(rows)
                for array, gradient in zip(flat, gradients, strict=True):
                    if array.ndim == 2:
                        gradient += self.decay * array
                adam.step(gradients)
            self.losses_[epoch] = total / n
        encoders = []
        for x, one in zip(views, parameters, strict=True):
            raw = Encoder(((one[0], one[1]), (one[2], one[3])), np.zeros(self.bits))
            encoders.append(Encoder(raw.layers, np.median(raw(x), axis=0)))
        return encoders[0], encoders[1]


def correspondence_loss(views: Views, parameters: list[list[Float64]], alpha: float) -> tuple[float, list[Float64]]:
    """Loss and gradients of one batch, by backpropagation.

    Parameters
    ----------
    views:
        (m, P_1) and (m, P_2).
    parameters:
        For each view four weights and biases, in the order of the layers: to hidden, to code, to hidden, to output.
    alpha:
        Weight of the correspondence.

    Returns
    -------
    The loss, and gradients in the order of the parameters of both views.
    """
    passes = [_forward(x, one) for x, one in zip(views, parameters, strict=True)]
    difference = passes[0][1] - passes[1][1]
    loss = alpha * float(np.square(difference).mean())
    gradients: list[Float64] = []
    for x, one, (hidden, codes, back, output), side in zip(views, parameters, passes, (1.0, -1.0), strict=True):
        error = output - x
        loss += (1 - alpha) * float(np.square(error).mean())
        at_output = 2 * (1 - alpha) * error / error.size
        at_back = at_output @ one[6].T * (1 - back**2)
        at_codes = at_back @ one[4].T + side * 2 * alpha * difference / difference.size
        at_codes = at_codes * (1 - codes**2)
        at_hidden = at_codes @ one[2].T * (1 - hidden**2)
        for inputs, delta in ((x, at_hidden), (hidden, at_codes), (codes, at_back), (back, at_output)):
            gradients += [inputs.T @ delta, delta.sum(axis=0)]
    return loss, gradients


def _forward(x: Float64, one: list[Float64]) -> tuple[Float64, Float64, Float64, Float64]:
    hidden = np.tanh(x @ one[0] + one[1])
    codes = np.tanh(hidden @ one[2] + one[3])
    back = np.tanh(codes @ one[4] + one[5])
    return hidden, codes, back, back @ one[6] + one[7]


def _start(dims: int, hidden: int, bits: int, rng: np.random.Generator) -> list[Float64]:
    """Glorot's uniform weights, no biases."""
    sizes = (dims, hidden, bits, hidden, dims)
    parameters: list[Float64] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        bound = np.sqrt(6 / (fan_in + fan_out))
        parameters += [rng.uniform(-bound, bound, (fan_in, fan_out)), np.zeros(fan_out)]
    return parameters
