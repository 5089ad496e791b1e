# Made by `make client` of ccq_client/_async. Change that.
"""The client: the verbs on the items of its collection, and the rest of the service."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import httpx

from ccq_client._sync.connection import Connection
from ccq_client._sync.items import Items
from ccq_client.calls import service
from ccq_client.calls.call import Call, to_json
from ccq_client.errors import UnavailableError
from ccq_client.retrying import Retries

if TYPE_CHECKING:
    from ccq_client._sync.admin import Aliases, Collections, Models, Snapshots
    from ccq_client._sync.jobs import Jobs
    from ccq_client.in_process import AsgiApp
    from ccq_client.limits import Caller, Limits

DEFAULT_URL = "http://127.0.0.1:8000"


class Client(Items):
    """A client of one CCQ service. Close it, or use it in `with`.

    Parameters
    ----------
    url:
        The root of the service, as in http://127.0.0.1:8000, which is the default where the environment variable
        CCQ_URL has none. Without ``http://`` or ``https://`` the former is meant.
    api_key:
        A key of it, if it asks for one; by default that of the environment variable CCQ_API_KEY.
    collection:
        The collection whose items its own verbs act on; `collection` gives others.
    timeout:
        Seconds until a request without an answer is given up; by default a little more than the service itself takes
        at most.
    retries:
        When to send a request again, or how often at most; 0 or None: never.
    check_version:
        Warn (`VersionWarning`) at the first request if the service is of another version than the client.
    transport:
        How requests are sent instead of over the network, for tests and the like.

    Raises
    ------
    TransportError
        The address is none.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        collection: str = "default",
        timeout: float | httpx.Timeout = 75.0,
        retries: Retries | int | None = Retries(),  # noqa: B008 (frozen)
        check_version: bool = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        connection = Connection(
            (os.environ.get("CCQ_URL") or DEFAULT_URL) if url is None else url,
            api_key=os.environ.get("CCQ_API_KEY") if api_key is None else api_key,
            timeout=timeout,
            retries=Retries.of(retries),
            check_version=check_version,
            transport=transport,
        )
        super().__init__(connection, collection)

    # Most programs only index and search, and start sooner without the rest.

    @cached_property
    def collections(self) -> Collections:
        """The verbs on collections."""
        from ccq_client._sync.admin import Collections

        return Collections(self._connection)

    @cached_property
    def aliases(self) -> Aliases:
        """The verbs on aliases."""
        from ccq_client._sync.admin import Aliases

        return Aliases(self._connection)

    @cached_property
    def models(self) -> Models:
        """The verbs on models."""
        from ccq_client._sync.admin import Models

        return Models(self._connection)

    @cached_property
    def jobs(self) -> Jobs:
        """The verbs on jobs."""
        from ccq_client._sync.jobs import Jobs

        return Jobs(self._connection)

    @cached_property
    def snapshots(self) -> Snapshots:
        """The verbs on snapshots."""
        from ccq_client._sync.admin import Snapshots

        return Snapshots(self._connection)

    @classmethod
    def for_app(cls, app: AsgiApp, *, api_key: str | None = None, collection: str = "default") -> Self:
        """A client of a service in this process, which starts at the first request and ends when it is closed.

        Parameters
        ----------
        app:
            An ASGI app, as ``service.app.create_app`` makes one.
        api_key, collection:
            As of the class.
        """
        from ccq_client.in_process import AppTransport

        return cls("http://in-process", api_key or "", collection=collection, transport=AppTransport(app))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The root of the service."""
        return self._connection.url

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def collection(self, name: str) -> Items:
        """The verbs on the items of another collection, over the same connections."""
        return Items(self._connection, name)

    def limits(self) -> Limits:
        """What a request may be."""
        return self._connection.limits(fresh=True)

    def caller(self) -> Caller:
        """Who the service takes this client for, and what its API key allows."""
        return self._connection.send(service.caller())

    def version(self) -> str:
        """The version of the service."""
        return self._connection.send(service.version())

    def ready(self) -> bool:
        """Whether every collection is loaded, asked once; TransportError if nothing answers."""
        try:
            self._connection.send(service.ready(), replace(self._connection.retries, times=0))
        except UnavailableError:
            return False
        return True

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Return once every collection is loaded, also where the service is not even there yet.

        Raises
        ------
        UnavailableError, TransportError
            It took longer.
        """
        often = replace(self._connection.retries, times=sys.maxsize, first=0.05, longest=0.5, total=seconds)
        self._connection.send(service.ready(), often)

    def request(
        self,
        method: Literal["GET", "PUT", "POST", "DELETE"],
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request of one's own and return the JSON of the reply: for routes that have no verb here.

        It is sent again like any other; a POST without an ``Idempotency-Key`` only where it was certainly not done.

        Parameters
        ----------
        method, path:
            As in HTTP; the path percent-encoded.
        body:
            A JSON value, or None for no body.
        headers:
            Those of this request alone.
        """
        content = None if body is None else to_json(body)
        call = Call(method, path, _as_it_is, content, headers=headers or {}, repeatable=method != "POST")
        return self._connection.send(call)


def _as_it_is(data: Any) -> Any:
    return data
