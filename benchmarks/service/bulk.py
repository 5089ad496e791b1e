"""What bulk import and export take: items a second, bytes on disk and in memory."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np

from ccq_cli.demo import wait_until_ready
from ccq_core import CCQ
from service.runtime import Runtime
from service.settings import Settings

DIM = 128
_LATENT = 32
_ROWS = 50_000
_CCQ = [sys.executable, "-m", "ccq_cli"]


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--items", default=1_000_000, show_default=True)
@click.option("--bits", default=32, show_default=True)
@click.option("--modalities", default=2, show_default=True, type=click.IntRange(1, 2))
@click.option("--keep", default="none", show_default=True, type=click.Choice(["none", "float16", "int8"]))
@click.option("--online", is_flag=True, help="Send them to a service, instead of writing to its data directory.")
def bulk(directory: Path, items: int, bits: int, modalities: int, keep: str, online: bool) -> None:
    """Import ITEMS of 128 dimensions a modality from files in DIRECTORY, which are made there, and export them."""
    directory.mkdir(parents=True, exist_ok=True)
    names = ["image", "text"][:modalities]
    _make(directory, names, items, bits)
    data, out = directory / "data", directory / "exported"
    for old in (data, out):
        shutil.rmtree(old, ignore_errors=True)
    model = directory / "model.ccq"
    words = [f"{name}={directory / name}.npy" for name in names]
    lines: list[str | Path] = ["--ids", directory / "ids.txt", "--payloads", directory / "payloads.jsonl"]
    if online:
        if keep != "none":
            raise click.UsageError("--keep is for data directories")
        with _service(data, model) as url:
            _timed("index, over HTTP", items, ["index", *words, *lines, "--url", url])
    else:
        _timed("index", items, ["index", *words, *lines, "--data", data, "--model", model, "--keep", keep])
    size = sum(file.stat().st_size for file in data.iterdir() if file.is_file())
    click.echo(f"on disk: {size / items:.1f} bytes an item")
    with multiprocessing.get_context("spawn").Pool(1) as fresh:
        click.echo(f"in memory: {fresh.apply(_bytes_to_load, (data,)) / items:.1f} bytes an item")
    _timed("export", items, ["export", data, out])


def _make(directory: Path, names: list[str], items: int, bits: int) -> None:
    """Files of correlated features, ids and payloads; and a model that was trained on the first of them."""
    rng = np.random.default_rng(0)
    mixes = {name: rng.standard_normal((_LATENT, DIM), dtype=np.float32) for name in names}
    arrays = {
        name: np.lib.format.open_memmap(directory / f"{name}.npy", "w+", np.float32, (items, DIM)) for name in names
    }
    for lo in range(0, items, _ROWS):
        latents = rng.standard_normal((min(_ROWS, items - lo), _LATENT), dtype=np.float32)
        for name, array in arrays.items():
            noise = rng.standard_normal((len(latents), DIM), dtype=np.float32)
            array[lo : lo + len(latents)] = latents @ mixes[name] + 0.5 * noise
    CCQ(bits=bits, iterations=5).fit({name: array[:20_000] for name, array in arrays.items()}).save(
        directory / "model.ccq"
    )
    with (directory / "ids.txt").open("w") as ids, (directory / "payloads.jsonl").open("w") as payloads:
        for i in range(items):
            ids.write(f"item-{i}\n")
            payloads.write(f'{{"title": "thing number {i}", "category": {i % 1000}, "price": {i % 77}.5}}\n')


def _timed(what: str, items: int, arguments: list[str | Path]) -> None:
    started, before = time.perf_counter(), os.times()
    subprocess.run([*_CCQ, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - started, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    click.echo(
        f"{what}: {items / seconds:,.0f} items/s, {seconds:.1f} s from start to end of the process, "
        f"{used / items * 1e6:.1f} microseconds of processor time an item"
    )


@contextmanager
def _service(data: Path, model: Path) -> Iterator[str]:
    command = [*_CCQ, "serve", "--data", str(data), "--port", "0", "--model", str(model)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield wait_until_ready(process)
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _bytes_to_load(data: Path) -> int:
    """How much memory a process needs for the items of a data directory, beside what it needs without."""
    runtime = Runtime.open(Settings(data=data))
    try:
        before = _resident()
        runtime.catalog.load("default")
        return _resident() - before
    finally:
        runtime.close()


def _resident() -> int:
    """Bytes of memory that this process has (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
