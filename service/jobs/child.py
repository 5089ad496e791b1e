"""A process of its own for a job, so that it takes neither the server's time nor, if it fails, the server with it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 2.0
_TAIL_BYTES = 4000


class ChildEnded(Exception):  # noqa: N818 (what to make of it is the caller's to say)
    """A process has ended otherwise than it should.

    Attributes
    ----------
    signal:
        Number of the signal that ended it, or None.
    output:
        The end of what it wrote to its standard error.
    """

    def __init__(self, status: int, output: str) -> None:
        super().__init__(f"exit status {status}: {output}")
        self.signal = -status if status < 0 else None
        self.output = output


def run_module(
    module: str,
    directory: Path,
    environment: Mapping[str, str],
    take: Callable[[dict[str, Any]], None],
    check: Callable[[], None],
) -> None:
    """Run a Python module, with a directory as its argument and for its temporary files, until it has ended.

    Parameters
    ----------
    environment:
        What it gets besides the environment of this process.
    take:
        Gets each line of JSON that it writes to its standard output. What it raises ends the process.
    check:
        Called ten times a second; what it raises ends the process.

    Raises
    ------
    ChildEnded
        Its exit status was not 0.
    """
    errors = directory / "stderr.txt"
    with (
        errors.open("wb") as log,
        subprocess.Popen(  # noqa: S603 (this program)
            [sys.executable, "-P", "-m", module, str(directory)],
            stdin=subprocess.PIPE,  # closed when this process ends, however it ends
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "TMPDIR": str(directory), **environment},
            start_new_session=True,  # a Ctrl-C is for the server, which ends it in order
        ) as process,
    ):
        try:
            for line in _lines(_opened(process.stdout), check):
                take(orjson.loads(line))
            status = process.wait()
        except BaseException:
            _end(process)
            raise
    if status == -signal.SIGTERM:  # whoever ends all processes of a server may reach this one first
        _check_for(check, _PATIENCE_SECONDS)
    if status:
        raise ChildEnded(status, errors.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip())


def _lines(stream: IO[bytes], check: Callable[[], None]) -> Iterator[bytes]:
    """Lines, as they come."""
    held = b""
    while True:
        check()
        if not select.select([stream], [], [], _POLL_SECONDS)[0]:
            continue
        chunk = os.read(stream.fileno(), 1 << 16)
        if not chunk:
            return
        *lines, held = (held + chunk).split(b"\n")
        yield from lines


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _check_for(check: Callable[[], None], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        check()
        time.sleep(_POLL_SECONDS)


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("expected a pipe")
    return stream
