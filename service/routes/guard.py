"""What stands before a route: who asks, whether that is allowed, and whether there is room for one more request."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from fastapi.security.utils import get_authorization_scheme_param

from service import errors
from service.access import ANYONE, Caller, caller_of, let_in
from service.admission import share_of
from service.headers import header
from service.keys import Scope
from service.origins import check_origin
from service.problems import problem_responses
from service.runtime import Runtime
from service.watching import note


class Guard(SecurityBase):
    """The dependency of a route that asks for a scope, or any key, and whose requests count as those in progress.

    One for all that is to be done: each dependency costs a request some 20 microseconds.
    """

    scheme_name = "bearer"
    model = HTTPBearer(
        description="An API key, or a JSON Web Token where the server is set up for them. Not asked for by a server "
        "that has no keys."
    )

    def __init__(self, scope: Scope | None) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> None:
        _identify(request, self.scope)
        share_of(request.scope).enter(write=self.scope not in ("search", None))


class _ScraperGuard(Guard):
    """Of a route that tells of the server as a whole, to anyone if the settings say so, however busy it is."""

    async def __call__(self, request: Request) -> None:
        if not _runtime(request).settings.metrics_open:
            _identify(request, self.scope).check_unlimited()


def _identify(request: Request, scope: Scope | None) -> Caller:
    kind, credential = get_authorization_scheme_param(header(request.scope, b"authorization"))
    if kind.lower() != "bearer":
        credential = header(request.scope, b"x-api-key")
    runtime = _runtime(request)
    caller = runtime.access.caller(credential)
    if caller is ANYONE:
        check_origin(request.scope, runtime.settings)
    note(request.scope, caller=caller.name)
    if scope is not None:
        caller.check_scope(scope)
    let_in(request.scope, caller)
    return caller


def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


async def _caller(request: Request) -> Caller:
    return caller_of(request.scope)


def needs(scope: Scope) -> Any:
    """What makes a route ask for a scope."""
    return Security(Guard(scope), scopes=[scope])


ANY_KEY = Security(Guard(None))
"""What makes a route ask for a key, whatever its scopes are."""

SCRAPING = Security(_ScraperGuard("admin"), scopes=["admin"])
"""What makes /metrics ask for a scope."""

CallerArg = Annotated[Caller, Depends(_caller)]
"""Who asks; for routes that have one of the above."""


def guarded(*kinds: type[Exception]) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that `needs` a scope: these problems, and those that come before it."""
    return problem_responses(
        errors.UnauthenticatedError,
        errors.ForbiddenError,
        errors.ForeignOriginError,
        *kinds,
        errors.OverloadedError,
        errors.RequestTimeoutError,
    )
