"""Texts by a model of ONNX Runtime: a tokenizer's file, ids and mask in, a vector for each text out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ccq_core.features import Float32
from service.encoders.interface import Surroundings, Takes
from service.encoders.options import local_file, read_options
from service.encoders.sessions import EXTRA, Session, SessionOptions, as_features

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class TextOptions(SessionOptions):
    """Options, beside those of all models.

    Attributes
    ----------
    tokenizer:
        The file `tokenizer.json` of the Hugging Face library `tokenizers`.
    max_tokens:
        Longer texts are cut.
    pad:
        ``longest``: texts that are encoded together are padded to the longest of them; ``max_tokens``: always to that.
    pad_id:
        Padded with this token, unless the tokenizer's file says with which.
    pool:
        For an output of one vector per token: their ``mean``, or the ``first``.
    """

    tokenizer: str
    max_tokens: int = Field(default=77, ge=1, le=1 << 16)
    pad: Literal["longest", "max_tokens"] = "longest"
    pad_id: int = Field(default=0, ge=0)
    pool: Literal["mean", "first"] | None = None


class OnnxText:
    """An encoder of texts; see `TextOptions`, and `Session` for what it raises. ValueError: no such tokenizer."""

    takes: Takes = "text"

    def __init__(self, options: TextOptions, surroundings: Surroundings) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise ImportError(EXTRA) from None
        # Requests are encoded beside each other; and a process with the tokenizer's own threads is not to be forked.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        path = local_file(options.tokenizer, surroundings)
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing more special
            raise ValueError(f"tokenizer: {path} is no tokenizer.json: {error}") from error
        padding = self._tokenizer.padding or {"pad_id": options.pad_id}
        length = options.max_tokens if options.pad == "max_tokens" else None
        self._tokenizer.enable_padding(**{**padding, "length": length})
        self._tokenizer.enable_truncation(options.max_tokens)
        self._session = Session(local_file(options.model, surroundings), options)
        self._session.check_inputs(_INPUTS)
        self._options = options
        self.dim: int = self.encode(["a", "a b"]).shape[1]  # tried with two: some models take one value alone

    def encode(self, values: Sequence[str]) -> Float32:
        """See `service.encoders.interface.Encoder`."""
        read = self._tokenizer.encode_batch(list(values))
        arrays = {
            "input_ids": np.array([each.ids for each in read], dtype=np.int64),
            "attention_mask": np.array([each.attention_mask for each in read], dtype=np.int64),
            "token_type_ids": np.array([each.type_ids for each in read], dtype=np.int64),
        }
        output = self._session.run({name: arrays[name] for name in self._session.inputs})
        return as_features(self._pooled(output, arrays["attention_mask"]), self._options.normalize)

    def _pooled(self, output: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """One vector for each text, of an output (n, P), or (n, tokens, P) where `pool` says how."""
        if self._options.pool is None:
            if output.ndim != 2:
                raise ValueError(f"output: expected the shape (n, P), got {output.shape}; or set pool to mean or first")
            return output
        if output.ndim != 3 or output.shape[:2] != mask.shape:
            raise ValueError(f"pool: expected an output of the shape (n, tokens, P), got {output.shape}")
        if self._options.pool == "first":
            return output[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1), dtype=np.float32)


def make(options: Mapping[str, Any], surroundings: Surroundings) -> OnnxText:
    """An encoder from its options in the file of encoders."""
    return OnnxText(read_options(options, TextOptions), surroundings)
