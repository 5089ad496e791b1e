"""Servers in processes of their own: started, watched and ended."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_START_SECONDS = 120
_STOP_SECONDS = 60


class ServerError(RuntimeError):
    """A server did not start; the message has the end of what it printed."""


@dataclass(frozen=True)
class Server:
    """A server that answers on a port of the loopback.

    Attributes
    ----------
    pid:
        Of its process.
    """

    port: int
    pid: int

    def resident(self) -> int:
        """Bytes of memory that it and its children have (Linux)."""
        return sum(_resident(pid) for pid in _family(self.pid))


@contextlib.contextmanager
def serving(command: Sequence[str], port: int, directory: Path, probe: str) -> Iterator[Server]:
    """Run `command` in `directory`, from when GET `probe` is a success, until the block ends.

    Raises
    ------
    ServerError
        It ended, or was not ready within two minutes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log = directory.with_name(f"{directory.name}.log")
    # Settings of services that are in the environment are for others; telemetry would go to the network.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CCQ_", "CHROMA_"))}
    clean |= {"PYTHONPATH": str(_ROOT), "ANONYMIZED_TELEMETRY": "False", "CCQ_LOG_LEVEL": "warning"}
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=clean, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        _wait(process, port, probe, log)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def on_disk(directory: Path) -> int:
    """Bytes of the blocks of all files in a directory and below."""
    return sum(file.stat().st_blocks * 512 for file in directory.rglob("*") if file.is_file())


def _wait(process: subprocess.Popen[bytes], port: int, probe: str, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while not _answers(port, probe):
        ended = process.poll()
        if ended is not None or time.monotonic() > end:
            what = "did not become ready" if ended is None else f"ended with status {ended}"
            printed = log.read_text(errors="replace")[-2000:]
            raise ServerError(f"{process.args!r} {what}; it printed:\n{printed}")
        time.sleep(0.05)


def _answers(port: int, probe: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", probe)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    family = [pid]
    for member in family:  # grows meanwhile
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{member}/task").iterdir():
                family += map(int, (task / "children").read_text().split())
    return family


def _resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024
