"""What came back, as a result or as an error."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import orjson

from ccq_client.calls.call import Call
from ccq_client.errors import (
    ApiError,
    Fault,
    TransportError,
    TransportTimeoutError,
    UnexpectedReplyError,
    class_of,
)
from ccq_client.retrying import Clock, retry_after

T = TypeVar("T")
_NEVER_ARRIVED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_NEVER_SENT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
_OF_PROXIES = frozenset((401, 403, 407, 408, 413, 429, 500, 502, 503, 504))
"""What stands between may answer so, without the words of a service."""


def result(call: Call[T], response: httpx.Response) -> T:
    """The result of a success; the response has been read.

    Raises
    ------
    UnexpectedReplyError
        The reply is not that of a CCQ service.
    """
    try:
        return call.parse(orjson.loads(response.content) if response.content else None)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnexpectedReplyError(f"{response.url}: the answer is not that of a CCQ service") from error


def problem(response: httpx.Response, clock: Clock) -> ApiError | UnexpectedReplyError:
    """The error that a response without success tells of; the response has been read.

    What has no words of a service is `ApiError` only if a proxy before one may have said it: that another server knows
    no such path does not mean that there is no such item.
    """
    wait = retry_after(response.headers.get("Retry-After"), clock)
    status = response.status_code
    try:
        body: Any = orjson.loads(response.content)
        code, title, detail = str(body["code"]), str(body["title"]), str(body["detail"])
        faults = [Fault(str(entry["pointer"]), str(entry["detail"])) for entry in body.get("errors") or ()]
        return class_of(code, status)(status, code, title, detail, faults, body.get("request_id"), wait)
    except (ValueError, TypeError, KeyError, AttributeError):
        title = f"{status} {response.reason_phrase}".strip()
        if status not in _OF_PROXIES:
            leads = f"; it leads to {response.headers['Location']}" if response.has_redirect_location else ""
            return UnexpectedReplyError(f"{response.url}: the answer, {title}, is not that of a CCQ service{leads}")
        detail = f"{response.url} answered without saying more"
        return class_of("", status)(status, "unknown", title, detail, (), response.headers.get("X-Request-Id"), wait)


def no_reply(error: Exception, url: str) -> TransportError:
    """The error for a request that `httpx` could not send, or that had no answer."""
    if isinstance(error, httpx.TimeoutException):
        arrived = not isinstance(error, _NEVER_ARRIVED)
        what = "did not answer in time" if arrived else "could not be reached in time"
        return TransportTimeoutError(f"{url} {what}", url, arrived)
    if isinstance(error, _NEVER_ARRIVED):
        hint = "start one with `ccq serve`, or give another address"
        if "WRONG_VERSION_NUMBER" in str(error):
            hint = "what is there may speak http:// instead of https://"
        return TransportError(f"no service answers at {url}: {error}; {hint}", url)
    if isinstance(error, httpx.TransportError) and not isinstance(error, _NEVER_SENT):
        return TransportError(f"the connection to {url} broke: {error or type(error).__name__}", url, arrived=True)
    return TransportError(f"cannot ask {url}: {error}", url, passing=False)
