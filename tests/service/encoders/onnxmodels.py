"""Tiny ONNX models, made on the spot, and what they compute, in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["[PAD]", "[UNK]", "a", "red", "blue", "car"]
TABLE = np.random.default_rng(7).standard_normal((len(WORDS), 8)).astype(np.float32)
COLOURS = np.random.default_rng(8).standard_normal((3, 12)).astype(np.float32)


def write_tokenizer(path: Path, **padding) -> None:
    """One token a word."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if padding:
        tokenizer.enable_padding(**padding)
    tokenizer.save(str(path))


def write_text_model(path: Path, kind: int = TensorProto.INT64, extra: str | None = None) -> None:
    """`pooled` (n, 8): the sum of the tokens' vectors where the mask is 1; `tokens` (n, t, 8): all of them."""
    inputs = [helper.make_tensor_value_info(name, kind, ["n", "t"]) for name in ("input_ids", "attention_mask")]
    if extra is not None:
        inputs.append(helper.make_tensor_value_info(extra, kind, ["n", "t"]))
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("Cast", ["attention_mask"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["columns"]),
        helper.make_node("Mul", ["tokens", "columns"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "middle"], ["pooled"], keepdims=0),
    ]
    constants = {"table": TABLE, "last": np.array([2]), "middle": np.array([1])}
    outputs = [
        helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["n", 8]),
        helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["n", "t", 8]),
    ]
    _write(path, nodes, inputs, outputs, constants)


def write_image_model(path: Path, size: int, kind: int = TensorProto.FLOAT) -> None:
    """`out` (n, 12): the mean colour times a matrix."""
    nodes = [
        helper.make_node("Cast", ["pixels"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["numbers", "sides"], ["colour"], keepdims=0),
        helper.make_node("MatMul", ["colour", "matrix"], ["out"]),
    ]
    inputs = [helper.make_tensor_value_info("pixels", kind, ["n", 3, size, size])]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 12])]
    _write(path, nodes, inputs, outputs, {"sides": np.array([2, 3]), "matrix": COLOURS})


def _write(path: Path, nodes, inputs, outputs, constants) -> None:
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def vectors(*texts: str) -> list[np.ndarray]:
    """The vectors (t, 8) of the tokens of each text."""
    numbers = {word: i for i, word in enumerate(WORDS)}
    return [TABLE[[numbers.get(word, 1) for word in text.split()]] for text in texts]


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
