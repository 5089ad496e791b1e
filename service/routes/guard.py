"""What stands before a route: who asks, whether that is allowed, and whether there is room for one more request."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from service import errors
from service.access import Caller, caller_of, let_in
from service.admission import share_of
from service.keys import Scope
from service.problems import problem_responses
from service.runtime import Runtime
from service.watching import note

_BEARER = HTTPBearer(
    scheme_name="bearer",
    auto_error=False,
    description="An API key, or a JSON Web Token where the server is set up for them. Not asked for by a server that "
    "has no keys.",
)
_HEADER = APIKeyHeader(
    name="X-API-Key", scheme_name="api_key", auto_error=False, description="The same in a header of its own."
)


async def _credential(
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
    header: Annotated[str | None, Depends(_HEADER)],
) -> str | None:
    return header if bearer is None else bearer.credentials


async def _admit(
    request: Request, scopes: SecurityScopes, credential: Annotated[str | None, Depends(_credential)]
) -> None:
    runtime: Runtime = request.app.state.runtime
    scope = _scope(scopes)
    _identify(request, runtime, scope, credential)
    share_of(request.scope).enter(write=scope != "search")


async def _admit_scraper(
    request: Request, scopes: SecurityScopes, credential: Annotated[str | None, Depends(_credential)]
) -> None:
    runtime: Runtime = request.app.state.runtime
    if not runtime.settings.metrics_open:
        _identify(request, runtime, _scope(scopes), credential).check_unlimited()


def _scope(scopes: SecurityScopes) -> Scope:
    """The one that the route was declared with."""
    (scope,) = scopes.scopes
    return cast("Scope", scope)


def _identify(request: Request, runtime: Runtime, scope: Scope, credential: str | None) -> Caller:
    caller = runtime.access.caller(credential)
    note(request.scope, caller=caller.name)
    caller.check_scope(scope)
    let_in(request.scope, caller)
    return caller


async def _caller(request: Request) -> Caller:
    return caller_of(request.scope)


def needs(scope: Scope) -> Any:
    """The dependency of a route that asks for a scope, and whose requests count as those in progress."""
    return Security(_admit, scopes=[scope])


SCRAPING = Security(_admit_scraper, scopes=["admin"])
"""The dependency of a route that tells of the server as a whole, and answers also when there are too many requests."""

CallerArg = Annotated[Caller, Depends(_caller)]
"""Who asks; for routes that have one of the dependencies above."""


def guarded(*kinds: type[Exception]) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that `needs` a scope: these problems, and those that come before it."""
    return problem_responses(
        errors.UnauthenticatedError,
        errors.ForbiddenError,
        *kinds,
        errors.OverloadedError,
        errors.RequestTimeoutError,
    )
