"""usearch, behind our least of a FastAPI service."""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import orjson

from benchmarks.peers.client import request
from benchmarks.peers.contestant import Ask, Contestant, Efforts, MissingPeerError
from benchmarks.peers.data import Dataset, Float32

DTYPES = ("f32", "i8")


class USearch(Contestant):
    """HNSW at its defaults (connectivity 16, `expansion_add` 128), vectors in memory as float32 or int8.

    Its Python package has no filters.
    """

    probe = "/ready"
    efforts = Efforts("expansion", (10, 16, 32, 64, 128, 256, 512, 1024), 64)
    filters = False

    def __init__(self, dtype: str) -> None:
        self.name = f"usearch-{dtype}"
        self._dtype = dtype

    def check(self) -> None:
        try:
            self.service = f"usearch {metadata.version('usearch')}, our FastAPI route"
        except metadata.PackageNotFoundError:
            raise MissingPeerError(f"{self.name}: expected the package usearch, which is not installed") from None

    def command(self, directory: Path, port: int) -> Sequence[str]:
        module = "benchmarks.peers.usearch_app"
        return [sys.executable, "-m", module, str(directory / "index.usearch"), str(port), self._dtype]

    def prepare(self, ask: Ask, data: Dataset) -> None:
        """There is one index, and it is there from the start."""

    def index(self, data: Dataset, lo: int, hi: int) -> bytes:
        vectors = base64.b64encode(data.items[lo:hi].astype("<f4", copy=False).tobytes()).decode()
        return request("POST", "/index", {"ids": list(range(lo, hi)), "vectors": vectors})

    def finish(self, ask: Ask) -> None:
        ask(request("POST", "/save"))

    def use(self, ask: Ask, effort: int) -> None:
        ask(request("PUT", f"/expansion/{effort}"))

    def search(self, vector: Float32, limit: int, effort: int, group: int | None) -> bytes:  # noqa: ARG002
        return request("POST", "/search", {"vector": vector.tolist(), "limit": limit})

    def found(self, reply: bytes) -> list[int]:
        ids: list[int] = orjson.loads(reply)["ids"]
        return ids
