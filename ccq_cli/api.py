"""What the verbs that talk to a running service share: options, requests, and problems as one readable error."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import click
import httpx
import numpy as np
from numpy.typing import NDArray

from ccq_client import ApiError as ClientApiError
from ccq_client import CCQError, Client, TransportError

Function = TypeVar("Function", bound=Callable[..., Any])
Method = Literal["GET", "PUT", "POST", "DELETE"]
_TRIES = 30
_LONGEST_PAUSE = 10.0
DEFAULT_URL = "http://127.0.0.1:8000"


class ApiError(Exception):
    """There is no service at the address, or it refused a request. The message is its problem document in words.

    Attributes
    ----------
    retry_after:
        Seconds after which to ask again makes sense; None: it does not.
    """

    def __init__(self, words: str, retry_after: float | None = None) -> None:
        super().__init__(words)
        self.retry_after = retry_after


API_KEY = click.option("--api-key", envvar="CCQ_API_KEY", help="API key; better in the variable CCQ_API_KEY.")
"""The option that says who asks."""


def service_options(function: Function) -> Function:
    """Add the options that say which service is meant, and who asks."""
    function = API_KEY(function)
    return click.option("--url", envvar="CCQ_URL", default=DEFAULT_URL, show_default=True, help="The service.")(
        function
    )


def collection_option(function: Function) -> Function:
    """Add the option that says which collection is meant."""
    return click.option("--collection", default="default", show_default=True)(function)


class Api:
    """A connection to one service, by `ccq_client`. It asks once: whoever goes on after a failure asks again itself.

    Parameters
    ----------
    url:
        Its root, as in http://127.0.0.1:8000.
    key:
        An API key of it, if it asks for one.

    Attributes
    ----------
    client:
        The verbs of the service. What they raise is put into words at the end of the program.

    Raises
    ------
    ApiError
        The address or the key is none.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        timeout = httpx.Timeout(120.0, connect=5.0)
        try:
            self.client = Client(url, key or "", timeout=timeout, retries=None, check_version=False)
        except CCQError as error:
            raise ApiError(in_words(error)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.client.close()

    def call(self, method: Method, path: str, body: Any = None, replies: Collection[str] = ()) -> Any:
        """Send a JSON request and return the JSON reply, an object that has at least the keys in `replies`.

        Raises
        ------
        ApiError
            Nothing answered, the service answered with a problem, or something else answered.
        """
        try:
            reply = self.client.request(method, path, body)
        except CCQError as error:
            raise ApiError(in_words(error), _patience(error)) from None
        if not isinstance(reply, dict) or not reply.keys() >= set(replies):
            raise ApiError(f"{self.client.url}{path}: the answer is not that of a CCQ service")
        return reply

    def insist(
        self,
        method: Method,
        path: str,
        body: Any = None,
        replies: Collection[str] = (),
        pause: Callable[[float], object] = time.sleep,
    ) -> Any:
        """What `call` returns, asked for again where the service says when to.

        Parameters
        ----------
        pause:
            Waits for some seconds; returns something true to give up.
        """
        tried = 0
        while True:
            tried += 1
            try:
                return self.call(method, path, body, replies)
            except ApiError as error:
                # The longer it takes, the more patience: all that wait would come again at one time.
                seconds = max(error.retry_after or 0, min(0.1 * 2 ** (tried - 1), _LONGEST_PAUSE))
                if error.retry_after is None or tried == _TRIES or pause(seconds):
                    raise


def collection_path(collection: str, verb: str = "") -> str:
    """The path of a collection, or of one of its routes; its name may hold any character."""
    path = f"/collections/{quote(collection, safe='', errors='surrogateescape').replace('.', '%2E')}"
    return f"{path}/{verb}" if verb else path


def to_base64(row: NDArray[Any]) -> str | None:
    """One feature vector as the service takes it, little-endian float32; None for a row of NaN."""
    return rows_to_base64(row[None])[0]


def rows_to_base64(rows: NDArray[Any], dtype: str = "<f4") -> list[str | None]:
    """Rows (n, P) of feature vectors, or with dtype ``u1`` of codes, as the service takes them; None for NaN alone."""
    plain = np.ascontiguousarray(rows, dtype=dtype)
    absent = np.isnan(plain).all(axis=1) if plain.dtype.kind == "f" else np.zeros(len(plain), dtype=bool)
    return [None if none else base64.b64encode(row).decode() for row, none in zip(plain, absent.tolist(), strict=True)]


def _patience(error: CCQError) -> float | None:
    """Seconds after which to ask again makes sense; None where it does not."""
    if not isinstance(error, ClientApiError):
        return None
    # Who limits rates means to be asked again, also without saying when.
    return 1.0 if error.status == httpx.codes.TOO_MANY_REQUESTS and error.retry_after is None else error.retry_after


def in_words(error: CCQError) -> str:
    """What the client raises, for people at a terminal."""
    match error:
        case ClientApiError(code=code, status=status) if code != "unknown":
            return f"{status} {error}"
        case TransportError(arrived=False, passing=True):
            return f"{error}; start one with `ccq serve`"
        case _:
            return str(error)
