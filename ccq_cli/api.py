"""What the verbs that talk to a running service share: options and connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
import httpx

from ccq_cli.console import err
from ccq_client import Client, Retries, TransportError
from ccq_client.calls.call import address
from ccq_client.retrying import Clock

Function = TypeVar("Function", bound=Callable[..., Any])
DEFAULT_URL = "http://127.0.0.1:8000"
_TRIES = 30
_PATIENCE_SECONDS = 3600.0
_TOLD_SECONDS = 2.0


class ServiceUrl(click.ParamType[str]):
    """The root of a service; of a host without a scheme, ``http://`` is meant, as the client has it."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return address(str(value))
        except TransportError as error:
            self.fail(str(error).removeprefix("url: ") + " (--url, CCQ_URL)", param, ctx)


API_KEY = click.option("--api-key", envvar="CCQ_API_KEY", help="API key; better in the variable CCQ_API_KEY.")
"""The option that says who asks."""
URL = click.option(
    "--url",
    envvar="CCQ_URL",
    type=ServiceUrl(),
    default=DEFAULT_URL,
    show_default=True,
    help="The service; otherwise that of the variable CCQ_URL.",
)
"""The option that says where the service is."""


def service_options(function: Function) -> Function:
    """Add the options that say which service is meant, and who asks."""
    function = API_KEY(function)
    return URL(function)


def collection_option(function: Function) -> Function:
    """Add the option that says which collection is meant."""
    return click.option(
        "--collection", default="default", show_default=True, help="The collection, or an alias of it."
    )(function)


def connect(url: str, key: str | None = None, retries: Retries | None = None) -> Client:
    """A client of one service, which asks once: at a terminal people see at once what is wrong, and ask again.

    Parameters
    ----------
    url, key:
        Its root, as in http://127.0.0.1:8000, and an API key of it, if it asks for one.
    retries:
        When to ask again all the same.
    """
    timeout = httpx.Timeout(120.0, connect=5.0)
    return Client(url, key or "", timeout=timeout, retries=retries, check_version=False)


@contextmanager
def connect_for_long(url: str, key: str | None, stop: threading.Event | None = None) -> Iterator[Client]:
    """A client for work that takes long: it asks again where that helps, up to 30 times, but not the first time.

    Parameters
    ----------
    stop:
        Ends a wait once it is set, by click.Abort.
    """
    with connect(url, key) as client:
        client.version()
    clock = _Patience(stop or threading.Event())
    with connect(url, key, Retries(_TRIES - 1, first=0.1, total=_PATIENCE_SECONDS, clock=clock)) as client:
        yield client


class _Patience(Clock):
    """A clock whose waits end where somebody wants to stop, and are told where they are long."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def sleep(self, seconds: float) -> None:
        """Wait; click.Abort if it is to stop."""
        if seconds >= _TOLD_SECONDS:
            err.print(f"the service is busy or away: asking again in {seconds:.0f} s")
        if self._stop.wait(seconds):
            raise click.Abort
