"""Who asks, and what that caller may do: anyone, while there are no keys, or the holder of a key or a token."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope as ASGIScope

from service.errors import Fault, ForbiddenError, UnauthenticatedError
from service.keys import PREFIX, KeyRing, Scope
from service.settings import Settings
from service.tokens import Tokens

_KEY = "ccq.caller"


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes
    ----------
    name:
        Of the key, or the subject of the token.
    scopes:
        What is allowed; `admin` includes the others.
    collections:
        Where it is allowed; None: everywhere.
    """

    name: str
    scopes: tuple[Scope, ...]
    collections: tuple[str, ...] | None

    def check_scope(self, scope: Scope) -> None:
        """Raise ForbiddenError unless this is allowed."""
        if scope not in self.scopes and "admin" not in self.scopes:
            have = ", ".join(self.scopes) or "none"
            raise ForbiddenError(f"expected an API key with scope {scope}, got {self.name!r} with {have}")

    def sees(self, collection: str) -> bool:
        """Whether a collection is among those of the caller."""
        return self.collections is None or collection in self.collections

    def check_collection(self, collection: str, means: str | None = None) -> None:
        """Raise ForbiddenError unless the caller may use this collection.

        `means`: the collection's own name, which decides, where it was called by an alias.
        """
        if not self.sees(collection if means is None else means):
            reason = f"expected an API key for collection {collection!r}, got {self._limited()}"
            raise ForbiddenError(reason, [Fault(f"/collections/{collection}", reason)])

    def check_unlimited(self) -> None:
        """Raise ForbiddenError if the caller is limited to some collections: for what belongs to none, or to all."""
        if self.collections is not None:
            raise ForbiddenError(f"expected an API key for all collections, got {self._limited()}")

    def _limited(self) -> str:
        return f"{self.name!r} for {', '.join(self.collections or ())}"


ANYONE = Caller("anyone", ("admin",), None)


class Access:
    """Tells who asks.

    Parameters
    ----------
    settings:
        Which data directory has the keys, and which tokens are valid.

    Raises
    ------
    KeysFileError
        The keys cannot be read.
    SettingError
        The settings about tokens do not fit together.
    """

    def __init__(self, settings: Settings) -> None:
        self._keys = KeyRing(settings.data)
        self._tokens = Tokens.of(settings)

    @property
    def open(self) -> bool:
        """Whether anyone may do anything, as there is nothing that could be asked for."""
        return self._tokens is None and not self._keys.used

    def caller(self, credential: str | None) -> Caller:
        """Who gives this key or token; UnauthenticatedError if one is needed, and this is none."""
        if self.open:
            return ANYONE
        if not credential:
            raise UnauthenticatedError("expected an API key (Authorization: Bearer KEY, or X-API-Key: KEY), got none")
        if self._tokens is not None and not credential.startswith(PREFIX):
            token = self._tokens.read(credential)
            return Caller(token.subject, token.scopes, token.collections)
        key = self._keys.find(credential)
        if key is None:
            raise UnauthenticatedError("expected an API key of this server, got one that it does not know")
        return Caller(key.name, key.scopes, key.collections)


def let_in(scope: ASGIScope, caller: Caller) -> None:
    """Remember who sent a request."""
    scope[_KEY] = caller


def caller_of(scope: ASGIScope) -> Caller:
    """Who sent a request that was let in."""
    caller: Caller = scope[_KEY]
    return caller


def sees_all(scope: ASGIScope) -> bool:
    """Whether who sent a request was let in, and may see everything."""
    caller: Caller | None = scope.get(_KEY)
    return caller is not None and caller.collections is None
