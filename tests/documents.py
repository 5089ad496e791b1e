"""The fenced blocks of the documents, and how they are run.

A comment in the line above a fence opts it out or says what it wants:

- ``<!-- not run: reason -->``;
- ``<!-- runs with: module -->``: only where that module is installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_BLOCK = re.compile(
    r"(?:^ *<!-- (?P<note>.*?) -->\n)?^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```$",
    flags=re.MULTILINE | re.DOTALL,
)
_NOTES = ("not run", "runs with")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes
    ----------
    language:
        What stands behind the fence.
    code:
        Its text, without the indentation of the fence.
    note:
        The kind of the comment above it: one of `_NOTES`, or "".
    why:
        The rest of that comment.
    """

    language: str
    code: str
    note: str = ""
    why: str = ""


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a Markdown text, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        note, _, why = (match["note"] or "").partition(": ")
        if note not in _NOTES:
            note = why = ""
        found.append(Block(match["language"], textwrap.dedent(match["code"]), note, why))
    return found


def pages() -> list[Path]:
    """All documents of the site, relative to `docs`."""
    return sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))


class Shell:
    """Runs the shell blocks of a page, one after the other, in one directory.

    A block whose last line is `ccq serve` leaves that running, on a port of its own, which takes the place of
    `localhost:8000` in all blocks.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "CCQ_PORT": str(self.port),
            "CCQ_URL": self.url,
            "CCQ_LOG_LEVEL": "error",
            "PYTHONUTF8": "1",
        }
        self._servers: list[subprocess.Popen[bytes]] = []

    def run(self, code: str) -> None:
        """Run a block; a command in it that fails is an AssertionError with all that was printed."""
        code = code.replace("localhost:8000", f"127.0.0.1:{self.port}").rstrip()
        *before, last = code.split("\n")
        serves = last.startswith("ccq serve")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(before) if serves else code],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}"
        if serves:
            self._serve(last)

    def _serve(self, command: str) -> None:
        server = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.folder, env=self._environment)
        self._servers.append(server)
        for _ in range(600):
            assert server.poll() is None, f"{command!r} ended with status {server.returncode}"
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/readyz").status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError(f"{command!r} did not become ready")

    def close(self) -> None:
        """End what was left running."""
        for server in self._servers:
            server.kill()
            server.wait()


@contextlib.contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """A `Shell` that is closed in the end."""
    made = Shell(folder)
    try:
        yield made
    finally:
        made.close()


def run_python(code: str, name: str, names: dict[str, Any]) -> None:
    """Run a block of Python as a program, with and into some names."""
    names["__name__"] = "__main__"
    exec(compile(code, name, "exec"), names)
