"""The little of HTTP that the verbs need: requests to a running service, problems as one readable error."""

from __future__ import annotations

import base64
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import click
import httpx
import numpy as np
import orjson
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])
DEFAULT_URL = "http://127.0.0.1:8000"


class ApiError(Exception):
    """The service refused a request. The message is its problem document in words."""


def service_options(function: Function) -> Function:
    """Add the options that say which service and collection are meant."""
    function = click.option("--collection", default="default", show_default=True)(function)
    return click.option("--url", envvar="CCQ_URL", default=DEFAULT_URL, show_default=True, help="The service.")(
        function
    )


class Api:
    """A connection to one service.

    Parameters
    ----------
    url:
        Its root, as in http://127.0.0.1:8000.
    """

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=httpx.Timeout(120.0, connect=5.0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._client.close()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a JSON request and return the JSON reply.

        Raises
        ------
        ApiError
            The service answered with a problem.
        httpx.HTTPError
            It did not answer.
        """
        content = None if body is None else orjson.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        response = self._client.request(method, path, content=content, headers=headers)
        if response.is_success:
            return orjson.loads(response.content) if response.content else None
        raise ApiError(_words(response))


def to_base64(row: NDArray[Any]) -> str | None:
    """One feature vector as the service takes it, little-endian float32; None for a row of NaN."""
    if row.dtype.kind == "f" and np.isnan(row).all():
        return None
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


def _words(response: httpx.Response) -> str:
    try:
        problem = orjson.loads(response.content)
        lines = [f"{response.status_code} {problem['title']}: {problem['detail']}"]
        errors = problem.get("errors") or []
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return f"{response.status_code} {response.reason_phrase} from {response.url}"
    # The detail is the first fault; the others follow.
    return "\n".join(lines + [f"  {error.get('detail', '')}" for error in errors[1:5]])
