"""A real service in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from ccq_cli.demo import wait_until_ready
from ccq_core import CCQ
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
