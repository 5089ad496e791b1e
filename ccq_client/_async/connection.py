"""Sends requests, again where that helps, and reads the replies."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import httpx

from ccq_client import __version__
from ccq_client.calls import service
from ccq_client.calls.call import Call, address
from ccq_client.errors import (
    CCQError,
    InputError,
    NotFoundError,
    TransportError,
    UnexpectedReplyError,
    VersionWarning,
)
from ccq_client.files import chunks_async
from ccq_client.replies import no_reply, problem, result
from ccq_client.retrying import Attempts, Retries

if TYPE_CHECKING:
    from ccq_client.limits import Limits

T = TypeVar("T")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_CHUNK = 1 << 20
_VERSION_SECONDS = 2.0


class AsyncConnection:
    """A connection to one service; the parameters are those of `AsyncClient`."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        timeout: float | httpx.Timeout,
        retries: Retries,
        check_version: bool,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.url = url = address(url)
        self.retries = retries
        self._version_known = not check_version
        self._limits: Limits | None = None
        self._seen: set[object] = set()
        headers = {"User-Agent": f"ccq-client/{__version__}"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        try:
            # A proxy that the environment names is for other machines than this one.
            elsewhere = httpx.URL(url).host not in _LOOPBACK
            self._http = httpx.AsyncClient(
                base_url=url, headers=headers, timeout=timeout, trust_env=elsewhere, transport=transport
            )
        except UnicodeEncodeError:
            raise InputError("the API key has characters that no key has") from None
        except (httpx.InvalidURL, ValueError, ImportError) as error:  # the latter two: of a proxy
            raise TransportError(f"{url}: {error}", url, passing=False) from None

    async def close(self) -> None:
        """Close it; no request can be sent any more."""
        await self._http.aclose()

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise InputError("the client is closed: make another, or do this before its `with` ends")

    async def send(self, call: Call[T], retries: Retries | None = None) -> T:
        """Send a request and return its result; `retries` instead of those of the client.

        Raises
        ------
        ApiError, TransportError, UnexpectedReplyError
            The service refused, nothing answered, or something else did.
        """
        self._check_open()
        await self._check_version()
        response, before = await self._answer(call, retries or self.retries)
        if response is None:
            return call.parse(None)
        try:
            return result(call, response)
        except UnexpectedReplyError as error:
            error.in_doubt = before or call.method != "GET"
            raise

    async def download(self, call: Call[None], file: BinaryIO) -> None:
        """Send a request and write the reply, as it arrives, to a file; raises what `send` raises."""
        self._check_open()
        await self._check_version()
        response, _ = await self._answer(call, self.retries, stream=True)
        if response is None:
            return
        try:
            async for chunk in response.aiter_bytes(_CHUNK):
                file.write(chunk)
        except httpx.HTTPError as error:
            raise no_reply(error, self.url) from error
        finally:
            await response.aclose()

    async def limits(self, fresh: bool = False) -> Limits:
        """What the service takes, asked for once; with `fresh` again."""
        if self._limits is None or fresh:
            self._limits = await self.send(service.limits())
        return self._limits

    def first_time(self, thing: object) -> bool:
        """Whether this is asked about this thing for the first time."""
        known = thing in self._seen
        self._seen.add(thing)
        return not known

    async def _check_version(self) -> None:
        """Warn once if the server is of another version; where it does not tell, the request itself will say why."""
        if self._version_known:
            return
        self._version_known = True  # whatever comes of it: a service that is away is asked once
        try:
            response = await self._http.get("/version", timeout=_VERSION_SECONDS)
            theirs = result(service.version(), response)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, UnexpectedReplyError):
            return
        if theirs.split(".")[:2] != __version__.split(".")[:2]:
            message = f"the service at {self.url} is of version {theirs}, this client of {__version__}"
            warnings.warn(message, VersionWarning, stacklevel=4)

    async def _answer(
        self, call: Call[Any], retries: Retries, stream: bool = False
    ) -> tuple[httpx.Response | None, bool]:
        """The successful response, unread if `stream`, and whether it may have been done before; None: it was."""
        attempts = Attempts(retries, call.repeatable or call.keyed, call.keyed)
        while True:
            failure: CCQError
            try:
                response = await self._attempt(call, stream)
                if response.is_success:
                    return response, attempts.in_doubt
                failure = problem(response, retries.clock)
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                failure = no_reply(error, self.url)
                failure.__cause__ = error
            if call.method == "DELETE" and attempts.in_doubt and isinstance(failure, NotFoundError):
                return None, True  # an attempt that seemed to fail deleted it
            pause = attempts.pause(failure)
            if pause is None:
                failure.in_doubt = attempts.in_doubt
                raise failure
            await retries.clock.sleep_async(pause)

    async def _attempt(self, call: Call[Any], stream: bool) -> httpx.Response:
        headers = dict(call.headers)
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        content = call.body
        if isinstance(content, Path):
            headers["Content-Length"] = str(content.stat().st_size)
        body = chunks_async(content) if isinstance(content, Path) else content
        request = self._http.build_request(call.method, call.path, content=body, headers=headers)
        response = await self._http.send(request, stream=stream)
        if stream and not response.is_success:
            await response.aread()
        return response
