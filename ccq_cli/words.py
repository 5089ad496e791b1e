"""Problems of a service in the words of the command line: the service itself speaks of paths and headers of HTTP."""

from __future__ import annotations

import re

from ccq_client import ApiError, CCQError, TransportError, UnexpectedReplyError

_KEY = "give the key by --api-key, or in the variable CCQ_API_KEY"
_ROOT = "expected --url to be the root of a service, as in http://127.0.0.1:8000, and names without a slash"
_REMEDIES = {
    "unauthenticated": f"{_KEY}; `ccq keys create`, on the machine of the service, makes one",
    "forbidden": f"{_KEY}; `ccq keys`, on the machine of the service, lists and makes them",
    "collection_not_found": "`ccq collections list` lists those that there are, "
    "`ccq collections create NAME --model MODEL` makes one",
    "model_not_found": "`ccq models list` lists those that there are, `ccq models upload NAME FILE` adds one",
    "alias_not_found": "`ccq alias list` lists those that there are, `ccq alias set ALIAS COLLECTION` makes one",
    "job_not_found": "`ccq jobs list` lists those that there are",
    "encoder_not_found": "the operator of the service sets up encoders (CCQ_ENCODERS)",
    "route_not_found": _ROOT,
    "method_not_allowed": _ROOT,
    "reply_too_large": "ask for fewer by --limit, or for less of their payloads by --payload KEY",
    "collection_loading": "ask again in a moment, or wait with `ccq health`",
    "storage_full": "free some disk of the service",
}
"""What to do, by the stable code of a problem; what else a code needs, its detail says well."""

_HTTP = re.compile(r"^[A-Z]+ (?='/)|; (?:PUT|GET) /.*$| \(Authorization: [^)]*\)|: ask for fewer\b.*$", re.DOTALL)
"""What a detail says to those who speak HTTP."""


def in_words(error: CCQError) -> str:
    """What the client raises, for people at a terminal."""
    match error:
        case ApiError() if error.code != "unknown":
            return _problem(error)
        case ApiError():  # what has no code is not of a service
            return f"{error}; if no service is there, say by --url or CCQ_URL where it is"
        case TransportError(arrived=False, passing=True):
            return f"{error} (--url, CCQ_URL)"
        case UnexpectedReplyError():
            return f"{error}; say by --url or CCQ_URL where the service is"
        case _:
            return str(error)


def without_http(detail: str) -> str:
    """What a service says of a problem, without what is for those who speak HTTP."""
    return _HTTP.sub("", detail)


def _problem(error: ApiError) -> str:
    said = without_http(error.detail)
    if said and error.status >= 500:  # what fails there, the request does not tell
        said = f"{error.title}: {said}"
    first = "; ".join(filter(None, (said or error.title, _REMEDIES.get(error.code))))
    return "\n".join([first, *(f"  {fault.detail}" for fault in error.errors[1:5])])
