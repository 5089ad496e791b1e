"""Running the service: bind, open the data directory, listen, and end in order."""

from __future__ import annotations

import gc
import ipaddress
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from threadpoolctl import threadpool_limits

from service import logs, tls, wire
from service.access import Access
from service.app import create_app
from service.errors import AddressError, DefaultModelError, OpenAddressError
from service.runtime import Runtime
from service.schemas.names import NAME_PATTERN, NAME_RULE
from service.settings import Settings


def serve(settings: Settings, model_path: Path | None = None) -> None:
    """Serve until told to stop (SIGINT, SIGTERM); requests in progress are finished first. For the main thread.

    A second signal ends the wait for them: they are answered with a problem.

    Prints ``ccq serve: listening on URL`` once requests are answered, and on a second line where the dashboard is.

    Parameters
    ----------
    settings:
        See `Settings`. Port 0 takes a free one.
    model_path:
        A model file. It is stored under its stem, and the default collection is created with it if it does not exist.

    Raises
    ------
    StartError
        The address or the data directory is in use, others could reach it without a key, a setting or the keys cannot
        be used, or the model does not fit; the message is one line.
    ModelFileError, OSError
        The model file cannot be used, or read.
    """
    if model_path is not None and not re.fullmatch(NAME_PATTERN, model_path.stem):
        raise DefaultModelError(f"model file {model_path.name!r}: expected a name of {NAME_RULE}, before its suffix")
    logs.configure(settings)
    https = tls.server_options(settings)
    with _bind(settings.host, settings.port) as listener:
        access = Access(settings)
        if access.open and not settings.open and not _is_loopback(listener):
            raise OpenAddressError(
                f"host {settings.host}: no API key: create one with `ccq keys create`, or set CCQ_OPEN=true to serve "
                "without"
            )
        app = create_app(settings, open_runtime=lambda _: runtime)  # asks for it when it starts
        runtime = Runtime.open(settings, model_path, access)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # `service.watching` has its own
            timeout_graceful_shutdown=settings.shutdown_seconds,
            lifespan="on",
            ws="none",  # else it depends on what else is installed whether some requests are refused in plain text
            http=partial(wire.Protocol, head_seconds=settings.request_seconds),  # type: ignore[arg-type]
            **https,
        )
        server = _Server(config, _url(listener, "https" if https else "http"), settings.ui)
        # Requests run beside each other: threads of the matrix library besides would only wait for one another.
        with _ended_by_signals(server), threadpool_limits(1, user_api="blas"), _collector_spared():
            server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that says where it listens, and ends in order also when it is told to hurry."""

    def __init__(self, config: uvicorn.Config, url: str, ui: bool) -> None:
        super().__init__(config)
        self._url, self._ui = url, ui

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"ccq serve: listening on {self._url}\n")
        if self._ui:
            sys.stdout.write(f"ccq serve: dashboard at {self._url}/ui/\n")
        sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop once requests in progress have ended; at a second signal end them (see `RequestGuard`)."""
        if not self.should_exit:
            super().handle_exit(sig, frame)
            return
        for task in list(self.server_state.tasks):
            task.get_loop().call_soon_threadsafe(task.cancel)


@contextmanager
def _collector_spared() -> Iterator[None]:
    """Let Python's collector leave alone what is there by now, which stays.

    It stops everything while it looks at everything: 60 milliseconds, every few seconds.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()  # for the end of the process, which frees all


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the server from the first moment on, and let it return instead of ending the process.

    Uvicorn takes the signals over while it runs, and afterwards raises them once more.
    """
    before = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _bind(host: str, port: int) -> socket.socket:
    """A socket that listens on the address, so that no other can; AddressError says what is wrong with it."""
    place = f"cannot listen on {host} port {port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressError(f"{place}: {error.strerror}") from None
    except UnicodeError:
        raise AddressError(f"{place}: this is no host name") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise AddressError(f"{place}: {error.strerror}") from None
    return listener


def _is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _url(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{scheme}://{host}:{port}"
