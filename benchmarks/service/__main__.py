"""`python -m benchmarks.service store DIR` and `python -m benchmarks.service lua FILE`; then, with `ccq serve`:

wrk -t1 -c64 -d10s --latency -s FILE http://127.0.0.1:8000

`python -m benchmarks.service floor` serves a constant instead, for what the requests alone cost on this machine.
`python -m benchmarks.service bulk DIR` measures bulk import and export by itself.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson
import uvicorn
from fastapi import FastAPI

from benchmarks.service.bulk import bulk
from ccq_core import CCQ
from service.records import Codes, Layout
from service.store.interface import Change, NewItem
from service.store.sqlite import SQLiteStore

DIM = 128
_BATCH = 10_000
_SCRIPT = """local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
math.randomseed(os.time())
local i = math.random(#bodies)
request = function()
  i = i %% #bodies + 1
  return wrk.format("POST", "/search", {["Content-Type"] = "application/json"}, bodies[i])
end
"""


@click.group()
def main() -> None:
    """Make what the service is measured with."""


main.add_command(bulk)


@main.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--items", default=1_000_000, show_default=True)
@click.option("--bits", default=32, show_default=True)
def store(directory: Path, items: int, bits: int) -> None:
    """Fill DIRECTORY with pairs of random codes; payloads are {"n": number, "c": n modulo 1000}, `c` is indexed."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((20_000, DIM)).astype(np.float32)
    texts = images @ rng.standard_normal((DIM, DIM)).astype(np.float32)
    model = CCQ(bits=bits, iterations=5, effort=1).fit({"image": images, "text": texts})
    layout = Layout.of(model)
    filled = SQLiteStore(directory)
    filled.put_model("random", model.to_bytes())
    record, _ = filled.create_collection("default", "random", ["c"])
    began = time.perf_counter()
    for first in range(0, items, _BATCH):
        numbers = range(first, min(first + _BATCH, items))
        shape = (len(numbers), len(layout.databases))
        codes = Codes(np.ones(shape, dtype=bool), rng.integers(0, 256, (*shape, layout.width), dtype=np.uint8))
        rows = [NewItem(f"item-{i}", b'{"n":%d,"c":%d}' % (i, i % 1000)) for i in numbers]
        filled.upsert(record, rows, layout.pack(codes), _nothing)
    click.echo(f"{items / (time.perf_counter() - began):,.0f} items a second, durable")
    filled.close()


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--filtered", is_flag=True, help="Each query among the items with one value of `c`.")
@click.option("--rescore", is_flag=True, help="Rank anew by kept features.")
def lua(file: Path, filtered: bool, rescore: bool) -> None:
    """Write a script for wrk to FILE, and its queries beside it: images as lists of numbers, ten results."""
    rng = np.random.default_rng(1)
    bodies = file.with_suffix(".bodies").resolve()
    with bodies.open("wb") as queries:
        for _ in range(2000):
            body = {"query": {"image": rng.standard_normal(DIM).round(6).tolist()}, "database": "image", "limit": 10}
            if filtered:
                body["filter"] = {"must": [{"key": "c", "match": {"value": int(rng.integers(1000))}}]}
            if rescore:
                body["rescore"] = True
            queries.write(orjson.dumps(body) + b"\n")
    file.write_text(_SCRIPT % bodies)


@main.command()
@click.option("--port", default=8001, show_default=True)
def floor(port: int) -> None:
    """Serve POST /search with a constant instead of results: what the same requests cost that nobody reads."""
    uvicorn.run(constant_app(), host="127.0.0.1", port=port, log_level="warning", access_log=False)


def constant_app() -> FastAPI:
    """A plain FastAPI app with one route, which gives the same reply to everything."""
    app = FastAPI()

    @app.post("/search")
    async def search() -> dict[str, Any]:
        return {"results": [], "next_cursor": None, "took_ms": 0.0}

    return app


def _nothing(_change: Change) -> None:
    """Nobody reads while the store is filled."""


if __name__ == "__main__":
    main()
