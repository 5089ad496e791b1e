"""Models of ONNX Runtime, from files. Nothing is ever downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ccq_core.features import Float32
from service.encoders.options import Options

EXTRA = "ONNX encoders need ONNX Runtime, tokenizers and Pillow: pip install 'ccq-search[onnx]'"
_DTYPES = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
Arrays = Mapping[str, NDArray[Any]]


class SessionOptions(Options):
    """Options of all encoders by ONNX Runtime.

    Attributes
    ----------
    model:
        The model's file.
    output:
        Name of the output that is taken; by default the first one.
    normalize:
        Whether features are divided by their length.
    threads:
        Threads of one encoding. Requests are encoded beside each other anyway.
    """

    model: str
    output: str | None = None
    normalize: bool = True
    threads: int = Field(default=1, ge=1)


class Session:
    """A model that is run on the processor.

    Parameters
    ----------
    path, options:
        Its file, and how to use it.

    Raises
    ------
    ImportError
        ONNX Runtime is not installed.
    ValueError
        The file is no model that can be run, or has no such output.
    """

    def __init__(self, path: Path, options: SessionOptions) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ImportError(EXTRA) from None
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.inter_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors have no common base but this one
            raise ValueError(f"model: {path} is no model that ONNX Runtime can run: {error}") from error
        self.inputs: dict[str, str] = {each.name: each.type for each in self._session.get_inputs()}
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = outputs[0] if options.output is None else options.output
        if self._output not in outputs:
            raise ValueError(f"output: expected one of {', '.join(outputs)}, got {options.output!r}")

    def run(self, arrays: Arrays) -> NDArray[np.float32]:
        """The output for inputs by name, which are turned into the types that the model has.

        ValueError if the model cannot be run on these.
        """
        given = {name: array.astype(_DTYPES[self.inputs[name]], copy=False) for name, array in arrays.items()}
        try:
            (output,) = self._session.run([self._output], given)
        except Exception as error:  # its errors have no common base but this one
            shapes = ", ".join(f"{name} {array.shape}" for name, array in given.items())
            raise ValueError(f"model: cannot be run on {shapes}: {error}") from error
        return np.asarray(output, dtype=np.float32)

    def check_inputs(self, known: Mapping[str, Any] | tuple[str, ...]) -> None:
        """ValueError if the model wants an input that is not among these, or one of a type that it cannot have."""
        for name, kind in self.inputs.items():
            if name not in known:
                raise ValueError(f"model: expected inputs {', '.join(known)}, got one named {name!r}")
            if kind not in _DTYPES:
                raise ValueError(f"model: expected input {name!r} of {', '.join(_DTYPES)}, got {kind}")


def as_features(output: NDArray[np.float32], normalize: bool) -> Float32:
    """An output (n, P) as features; divided by their lengths if so wanted, where these are not 0."""
    if output.ndim != 2:
        raise ValueError(f"output: expected the shape (n, P), got {output.shape}")
    if not normalize:
        return output
    lengths = np.linalg.norm(output.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(output / np.where(lengths > 0, lengths, 1), dtype=np.float32)
