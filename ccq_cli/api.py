"""The little of HTTP that the verbs need: requests to a running service, problems as one readable error."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from types import TracebackType
from typing import IO, Any, Self, TypeVar
from urllib.parse import quote

import click
import httpx
import numpy as np
import orjson
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])
DEFAULT_URL = "http://127.0.0.1:8000"


class ApiError(Exception):
    """There is no service at the address, or it refused a request. The message is its problem document in words."""


def service_options(function: Function) -> Function:
    """Add the options that say which service is meant, and who asks."""
    function = click.option("--api-key", envvar="CCQ_API_KEY", help="API key; better in the variable CCQ_API_KEY.")(
        function
    )
    return click.option("--url", envvar="CCQ_URL", default=DEFAULT_URL, show_default=True, help="The service.")(
        function
    )


def collection_option(function: Function) -> Function:
    """Add the option that says which collection is meant."""
    return click.option("--collection", default="default", show_default=True)(function)


class Api:
    """A connection to one service.

    Parameters
    ----------
    url:
        Its root, as in http://127.0.0.1:8000.
    key:
        An API key of it, if it asks for one.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        self._url = url
        headers = {} if not key else {"Authorization": f"Bearer {key}"}
        try:
            # A proxy that the environment names is for other machines than this one.
            elsewhere = httpx.URL(url).host not in ("localhost", "127.0.0.1", "::1")
            timeout = httpx.Timeout(120.0, connect=5.0)
            self._client = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=elsewhere)
        except UnicodeEncodeError:
            raise ApiError("the API key has characters that no key has") from None
        except (httpx.InvalidURL, ValueError, ImportError) as error:  # the latter two: of a proxy
            raise ApiError(f"{url}: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._client.close()

    def call(self, method: str, path: str, body: Any = None, replies: Collection[str] = ()) -> Any:
        """Send a JSON request and return the JSON reply, an object that has at least the keys in `replies`.

        Raises
        ------
        ApiError
            The service answered with a problem, or something else answered.
        httpx.HTTPError
            Nothing answered.
        """
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            content = None if body is None else orjson.dumps(body)
            response = self._client.request(method, path, content=content, headers=headers)
        except (orjson.JSONEncodeError, UnicodeError, httpx.InvalidURL) as error:
            raise ApiError(f"cannot ask {self._url}: {error}") from None
        if not response.is_success:
            raise ApiError(_words(response))
        try:
            reply = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            reply = None
        if not isinstance(reply, dict) or not reply.keys() >= set(replies):
            raise ApiError(f"{response.url}: the answer is not that of a CCQ service")
        return reply

    def download(self, path: str, out: IO[bytes]) -> None:
        """Write the reply to a GET request to a file; raises what `call` raises."""
        with self._client.stream("GET", path) as response:
            if not response.is_success:
                response.read()
                raise ApiError(_words(response))
            for chunk in response.iter_bytes(1 << 20):
                out.write(chunk)


def collection_path(collection: str, verb: str) -> str:
    """The path of a collection's route; its name may hold any character."""
    return f"/collections/{quote(collection, safe='', errors='surrogateescape').replace('.', '%2E')}/{verb}"


def to_base64(row: NDArray[Any]) -> str | None:
    """One feature vector as the service takes it, little-endian float32; None for a row of NaN."""
    if row.dtype.kind == "f" and np.isnan(row).all():
        return None
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


def _words(response: httpx.Response) -> str:
    try:
        problem = orjson.loads(response.content)
        lines = [f"{response.status_code} {problem['title']}: {problem['detail']}"]
        # The detail is the first fault; the others follow.
        lines += [f"  {error['detail']}" for error in (problem.get("errors") or [])[1:5]]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return f"{response.status_code} {response.reason_phrase} from {response.url}"
    return "\n".join(lines)
