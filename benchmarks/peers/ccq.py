"""CCQ's own service, by length of codes and by what it keeps beside them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

import ccq_core
from benchmarks.peers.client import request
from benchmarks.peers.contestant import Ask, Contestant, Efforts, in_base64
from benchmarks.peers.data import DIM, Dataset, Float32
from ccq_core import CCQ

BITS = (32, 64, 128)
KEPT = ("none", "float16", "int8")
_OVERSAMPLING = (4, 10, 14, 30)
_MODEL_ROWS = 20_000
_ITERATIONS = 10
_models: dict[tuple[int, int], tuple[bytes, float]] = {}


class CCQService(Contestant):
    """A collection of one modality; with kept features all searches are ranked anew by them.

    The model keeps angles: neither whitening nor a shorter latent space, which pay between modalities and would here
    rank by other cosines than those that are asked for.
    """

    service = f"ccq-search {ccq_core.__version__}"
    probe = "/readyz"

    def __init__(self, bits: int, kept: str) -> None:
        self.name = f"ccq-{bits}" if kept == "none" else f"ccq-{bits}-{kept}"
        self.efforts = Efforts("", (0,), 0) if kept == "none" else Efforts("oversampling", _OVERSAMPLING, 4)
        self._bits = bits
        self._kept = kept

    def check(self) -> None:
        """Nothing can be missing."""

    def command(self, directory: Path, port: int) -> Sequence[str]:
        return [sys.executable, "-m", "ccq_cli", "serve", "--data", str(directory), "--port", str(port)]

    def prepare(self, ask: Ask, data: Dataset) -> None:
        model, self.training = _model(self._bits, data)
        ask(request("PUT", "/models/m", model))
        ask(request("PUT", "/collections/default", {"model": "m", "indexes": ["group"], "keep": self._kept}))

    def index(self, data: Dataset, lo: int, hi: int) -> bytes:
        items = [
            {"id": str(i), "features": {"v": in_base64(data.items[i])}, "payload": {"group": int(data.groups[i])}}
            for i in range(lo, hi)
        ]
        return request("POST", "/index", {"items": items})

    def search(self, vector: Float32, limit: int, effort: int, group: int | None) -> bytes:
        body: dict[str, Any] = {
            "query": {"v": vector.tolist()},
            "database": "v",
            "limit": limit,
            "with_payload": False,
        }
        if effort:
            body |= {"rescore": True, "oversampling": effort}
        if group is not None:
            body["filter"] = {"must": [{"key": "group", "match": {"value": group}}]}
        return request("POST", "/search", body)

    def found(self, reply: bytes) -> list[int]:
        return [int(hit["id"]) for hit in orjson.loads(reply)["results"]]


def _model(bits: int, data: Dataset) -> tuple[bytes, float]:
    """A model file that was trained on the first items, made once for each length, and the seconds that took."""
    key = (id(data), bits)
    if key not in _models:
        began = time.perf_counter()
        model = CCQ(bits, dim=DIM, preprocess="none", mapping="procrustes", iterations=_ITERATIONS)
        content = model.fit({"v": data.items[:_MODEL_ROWS]}).to_bytes()
        _models[key] = content, time.perf_counter() - began
    return _models[key]
