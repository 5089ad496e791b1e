"""A real service in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from ccq_cli.demo import wait_until_ready
from ccq_core import CCQ
from tests.cli.bulk import PAYLOADS, ok
from tests.core.conftest import make_pairs


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A directory with arrays image.npy and text.npy of 300 pairs, a model of them, ids and payloads."""
    directory = tmp_path_factory.mktemp("files")
    data = make_pairs(300)
    for name, array in data.items():
        np.save(directory / f"{name}.npy", array)
    CCQ(bits=16).fit(data).save(directory / "m.ccq")
    (directory / "ids.txt").write_text("".join(f"item-{i}\n" for i in range(300)))
    (directory / "items.jsonl").write_text("".join(f'{{"title": "n° {i}", "even": {i % 2}}}\n' for i in range(300)))
    return directory


@pytest.fixture(scope="session")
def url(files, tmp_path_factory) -> Iterator[str]:
    store = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-m", "ccq_cli", "serve", "--data", str(store), "--port", "0"]
    process = subprocess.Popen([*command, "--model", str(files / "m.ccq")], stdout=subprocess.PIPE, text=True)
    try:
        yield wait_until_ready(process)
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0
        process.stdout.close()


@pytest.fixture
def rows(tmp_path, files):
    """Words for the command line that name files of 60 rows, some without one modality or both; and their directory."""
    arrays = {name: np.load(files / f"{name}.npy")[:60].copy() for name in ("image", "text")}
    arrays["image"][::6] = np.nan
    arrays["text"][::10] = np.nan
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "ids.txt").write_text("".join(f"item {i}\n" for i in range(60)), encoding="utf-8")
    lines = [json.dumps(PAYLOADS[i % len(PAYLOADS)]) for i in range(60)]
    (tmp_path / "p.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = [f"{name}={tmp_path / name}.npy" for name in arrays]
    return [*words, "--ids", tmp_path / "ids.txt", "--payloads", tmp_path / "p.jsonl"], tmp_path


@pytest.fixture
def directory(rows, files):
    """A data directory with those rows."""
    words, place = rows
    said = ok("index", *words, "--data", place / "data", "--model", files / "m.ccq", "--batch", 7)
    assert "indexed 58 items into collection default; 2 rows without features left out (" in said
    return place / "data"
