"""What training has come to, in a file, so that it can go on where it was ended."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccq_core.errors import InvalidInputError
from ccq_core.features import Float32
from ccq_core.files import read_npz
from ccq_core.quantizer import Codes

PAUSE = 20.0  # between two savings, in times what a saving takes: all of them are about a twentieth of the time
_MAPPING = "mapping."


@dataclass(frozen=True)
class State:
    """What Algorithm 1 needs to go on after an iteration.

    Attributes
    ----------
    mappings:
        R^v (P_v, D) that the codes were found with.
    codebooks:
        (M, 256, D) float32 that they were found with.
    losses:
        Loss after each iteration so far.
    seconds:
        How long these took.
    random:
        State of the random number generator.
    """

    mappings: dict[str, Float32]
    codebooks: Float32
    losses: list[float]
    seconds: float
    random: Mapping[str, Any]


class Checkpoint:
    """The file of one training.

    Parameters
    ----------
    path:
        The file; it need not exist.
    settings, sums:
        What the training is of: settings in words, and numbers that its features come to. A file of any other training,
        also of one with other threads, whose sums are rounded differently, is passed over.
    """

    def __init__(self, path: str | os.PathLike[str], settings: str, sums: Sequence[NDArray[np.float64]]) -> None:
        self._path = Path(path)
        digest = hashlib.sha256(settings.encode())
        for total in sums:
            digest.update(repr(total.shape).encode() + np.ascontiguousarray(total).tobytes())
        self._training = np.frombuffer(digest.digest(), dtype=np.uint8)
        self._next = 0.0

    def save(self, state: State, codes: Codes) -> None:
        """Write down a state and the codes (n, M) of all objects, whole or not at all; unless it was done just now."""
        began = time.monotonic()
        if began < self._next:
            return
        part = self._path.with_name(self._path.name + ".part")
        with part.open("wb") as file:
            np.savez(
                file,
                training=self._training,
                codes=codes,
                codebooks=state.codebooks,
                losses=np.array(state.losses),
                seconds=np.array(state.seconds),
                random=_packed(state.random),
                **{_MAPPING + name: array for name, array in state.mappings.items()},  # type: ignore[arg-type]
            )
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)
        ended = time.monotonic()
        self._next = ended + PAUSE * (ended - began)

    def load(self, codes: Codes) -> State | None:
        """The state that was saved last, and its codes into `codes`; None if there is none that can be gone on from."""
        try:
            arrays = read_npz(self._path)
        except (FileNotFoundError, InvalidInputError):  # none yet, or torn by a loss of power
            return None
        if "training" not in arrays or not np.array_equal(arrays["training"], self._training):
            return None
        codes[:] = arrays["codes"]
        return State(
            {name.removeprefix(_MAPPING): arrays[name] for name in arrays if name.startswith(_MAPPING)},
            arrays["codebooks"],
            arrays["losses"].tolist(),
            float(arrays["seconds"]),
            _unpacked(arrays["random"]),
        )


def _packed(random: Mapping[str, Any]) -> NDArray[np.uint64]:
    """The state of a PCG64 generator: two numbers of 128 bits, and half a number of 64 that is left over."""
    inner = random["state"]
    words = [inner["state"] >> 64, inner["state"], inner["inc"] >> 64, inner["inc"], random["has_uint32"]]
    return np.array([word & (2**64 - 1) for word in [*words, random["uinteger"]]], dtype=np.uint64)


def _unpacked(words: NDArray[np.uint64]) -> Mapping[str, Any]:
    state, low, inc, inc_low, has_uint32, uinteger = map(int, words)
    return {
        "bit_generator": "PCG64",
        "state": {"state": state << 64 | low, "inc": inc << 64 | inc_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
