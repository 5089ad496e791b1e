"""Which requests a web page of somebody else may have made, through the browser of a user.

A server that asks for no key does what it is asked by whoever reaches it, and a browser on the same machine does. It
sends some requests of any page without asking, as a POST without a body. And a page may have its own name lead to this
machine once it has been loaded (DNS rebinding), which makes it the server's own page for the browser.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Scope

from service.errors import ForeignOriginError
from service.headers import header
from service.settings import Settings


def check_origin(scope: Scope, settings: Settings) -> None:
    """Raise ForeignOriginError if a request to a server without keys may be of a foreign page.

    Its page is foreign unless it is the server's own, as the request called it, or of an origin that the settings name.
    The server is called by an address, or by a name that nobody can have in the public DNS, unless the settings
    let anyone call it, or name an origin with that host.
    """
    host, origin, trusted = header(scope, b"host"), header(scope, b"origin"), settings.cors_origins
    if not _known(host, settings.open, trusted):
        raise ForeignOriginError(
            f"expected a call by an address or by localhost, as this server has no API keys, got host {host[:200]!r}: "
            "make a key (`ccq keys create`), or name the origin of the page in CCQ_CORS_ORIGINS"
        )
    if origin and _host(origin) != host.lower() and origin not in trusted and "*" not in trusted:
        raise ForeignOriginError(
            f"expected a page of this server, as it has no API keys, got one of {origin[:200]!r}: make a key "
            "(`ccq keys create`), or name the origin of the page in CCQ_CORS_ORIGINS"
        )


def _host(origin: str) -> str:
    """Host and port of an origin, as the header `Host` has them; empty if there are none, as of "null"."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


@lru_cache(maxsize=64)
def _known(host: str, anyone: bool, trusted: tuple[str, ...]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if anyone or "." not in name.rstrip(".") or name.endswith(".localhost"):
        return True  # also no host at all, which no browser sends
    if "*" in trusted or any(urlsplit(origin).hostname == name for origin in trusted):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
