"""Chroma's own server, as `chroma run` starts it, by its HTTP API."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.client import request
from benchmarks.peers.contestant import Ask, Contestant, Efforts, MissingPeerError, in_base64
from benchmarks.peers.data import Dataset, Float32

_COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
_COLLECTION: dict[str, Any] = {"name": "bench", "configuration": {"hnsw": {"space": "cosine"}}}


class Chroma(Contestant):
    """HNSW at its defaults (16 neighbours, `ef_construction` 100) but for cosine instead of Euclidean distances."""

    name = "chroma"
    probe = "/api/v2/heartbeat"
    efforts = Efforts("ef_search", (10, 20, 50, 100, 200, 400, 800), 100)
    batch = 5000
    """Nearly the `max_batch_size` that the server names (5,461)."""

    def check(self) -> None:
        try:
            self.service = f"chromadb {metadata.version('chromadb')}"
        except metadata.PackageNotFoundError:
            raise MissingPeerError("chroma: expected the package chromadb, which is not installed") from None

    def command(self, directory: Path, port: int) -> Sequence[str]:
        program = Path(sys.executable).with_name("chroma")
        return [str(program), "run", "--path", str(directory), "--host", "127.0.0.1", "--port", str(port)]

    def prepare(self, ask: Ask, data: Dataset) -> None:  # noqa: ARG002
        created = orjson.loads(ask(request("POST", _COLLECTIONS, _COLLECTION)))
        self._path = f"{_COLLECTIONS}/{created['id']}"

    def index(self, data: Dataset, lo: int, hi: int) -> bytes:
        body = {
            "ids": [str(i) for i in range(lo, hi)],
            "embeddings": [in_base64(row) for row in data.items[lo:hi]],
            "metadatas": [{"group": int(group)} for group in data.groups[lo:hi]],
        }
        return request("POST", f"{self._path}/add", body)

    def use(self, ask: Ask, effort: int) -> None:
        """Only before the first search: an index that is in memory keeps the effort that it was read with."""
        ask(request("PUT", self._path, {"new_configuration": {"hnsw": {"ef_search": effort}}}))

    def search(self, vector: Float32, limit: int, effort: int, group: int | None) -> bytes:  # noqa: ARG002
        body: dict[str, Any] = {"query_embeddings": [vector.tolist()], "n_results": limit, "include": ["distances"]}
        if group is not None:
            body["where"] = {"group": group}
        return request("POST", f"{self._path}/query", body)

    def found(self, reply: bytes) -> list[int]:
        return [int(name) for name in orjson.loads(reply)["ids"][0]]
