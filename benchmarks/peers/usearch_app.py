"""usearch behind the least of a FastAPI service: vectors in memory, saved when asked to.

`python -m benchmarks.peers.usearch_app FILE PORT DTYPE`
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

from benchmarks.peers.data import DIM


def create_app(file: Path, dtype: str) -> FastAPI:
    """An app around one index of cosines; what `file` holds, if it is there.

    Bodies are read by orjson, and searches run on the event loop: handing them to a thread would take longer.
    """
    from usearch.index import Index

    index: Any = Index(ndim=DIM, metric="cos", dtype=dtype)
    if file.exists():
        index.load(str(file))
    app = FastAPI()

    @app.get("/ready")
    async def ready() -> Response:
        return Response()

    @app.post("/index")
    async def add(request: Request) -> Response:
        body = orjson.loads(await request.body())
        vectors = np.frombuffer(base64.b64decode(body["vectors"]), dtype="<f4").reshape(-1, DIM)
        index.add(np.asarray(body["ids"], dtype=np.uint64), vectors)
        return Response()

    @app.post("/save")
    async def save() -> Response:
        index.save(str(file))
        return Response()

    @app.put("/expansion/{value}")
    async def expansion(value: int) -> Response:
        index.expansion_search = value
        return Response()

    @app.post("/search")
    async def search(request: Request) -> Response:
        body = orjson.loads(await request.body())
        matches = index.search(np.asarray(body["vector"], dtype=np.float32), body["limit"], threads=1)
        reply = {"ids": matches.keys, "distances": matches.distances}
        return Response(orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")

    return app


if __name__ == "__main__":
    uvicorn.run(
        create_app(Path(sys.argv[1]), sys.argv[3]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
