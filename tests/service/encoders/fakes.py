"""Encoders of a few lines, and a service that has them."""

from __future__ import annotations

import base64
import threading
from pathlib import Path

import numpy as np

from service.encoders import ValueRefusedError
from service.encoders.configuration import KINDS
from tests.service.harness import DIMS, InProcess

LETTERS = "abcdefgh"
assert len(LETTERS) == DIMS["text"]

TABLES = """
[letters]
kind = "letters"

[bytes]
kind = "bytes"
"""


class Letters:
    """A text's counts of the first letters; one without any is refused, and "boom" fails."""

    takes = "text"
    dim = len(LETTERS)

    def __init__(self, options=None, surroundings=None):
        self.options, self.surroundings = options, surroundings
        self.calls = []
        self.threads = set()

    def encode(self, values):
        self.calls.append(list(values))
        self.threads.add(threading.current_thread())
        if "boom" in values:
            raise RuntimeError("the model is on fire")
        rows = np.array([[text.count(letter) for letter in LETTERS] for text in values], dtype=np.float32)
        for row, text in enumerate(values):
            if not rows[row].any():
                raise ValueRefusedError(row, f"expected one of the letters {LETTERS}, got {text!r}")
        return rows


class Bytes:
    """The first bytes of a file, as numbers."""

    takes = "image"
    dim = DIMS["image"]

    def encode(self, values):
        return np.array([[*data[: self.dim].ljust(self.dim, b"\1")] for data in values], dtype=np.float32)


def letters(text: str) -> list[float]:
    """What `Letters` makes of a text."""
    return Letters().encode([text])[0].tolist()


def number_of(data: bytes) -> list[float]:
    """What `Bytes` makes of a file."""
    return Bytes().encode([data])[0].tolist()


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def serving(tmp_path: Path, monkeypatch, tables: str = TABLES, **settings) -> InProcess:
    """A service whose file of encoders has these tables, of the kinds `letters` and `bytes` too."""
    add_kinds(monkeypatch)
    return InProcess(tmp_path / "data", encoders=write_tables(tmp_path, tables), **settings)


def add_kinds(monkeypatch) -> None:
    """Let there be the kinds `letters` and `bytes`."""
    monkeypatch.setitem(KINDS, "letters", Letters)
    monkeypatch.setitem(KINDS, "bytes", lambda options, surroundings: Bytes())


def write_tables(folder: Path, tables: str = TABLES) -> Path:
    """A file of encoders."""
    file = folder / "encoders.toml"
    file.write_text(tables)
    return file
