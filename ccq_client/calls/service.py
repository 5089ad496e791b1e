"""Requests about the service itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ccq_client.calls.call import Call

if TYPE_CHECKING:
    from ccq_client.limits import Caller, Limits


def limits() -> Call[Limits]:
    """What a request may be."""
    from ccq_client.limits import limits_of

    return Call("GET", "/limits", limits_of)


def caller() -> Call[Caller]:
    """Who asks."""
    from ccq_client.limits import caller_of

    return Call("GET", "/caller", caller_of)


def version() -> Call[str]:
    """The version of the server."""
    return Call("GET", "/version", lambda data: str(data["version"]))


def ready() -> Call[str]:
    """Ask whether every collection is loaded."""
    return Call("GET", "/readyz", lambda data: str(data["status"]))
