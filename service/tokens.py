"""JSON Web Tokens: what an identity provider signed, with a secret that is shared or a key whose public half is known.

Their ``scope`` are words joined by spaces, of which those that this service does not know are passed over;
``collections``, if it is there, is a list of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

from service.errors import SettingError, UnauthenticatedError
from service.keys import Scope
from service.settings import Settings

if TYPE_CHECKING:
    from types import ModuleType

# What a token may be signed by follows from the key that is here, never from the token: else a public key could be
# taken for a shared secret, and whoever knows it could sign.
_BY_SECRET = ("HS256", "HS384", "HS512")
_BY_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BY_EC = ("ES256", "ES384", "ES512")
_BY_ED25519 = ("EdDSA",)
_SHORTEST_SECRET = 32  # bytes, as many as the hash has (RFC 7518, section 3.2)
_LEEWAY_SECONDS = 30


@dataclass(frozen=True)
class Token:
    """A token that is valid; fields as in `service.access.Caller`."""

    subject: str
    scopes: tuple[Scope, ...]
    collections: tuple[str, ...] | None


class Tokens:
    """Checks tokens. See `of`."""

    def __init__(self, jwt: ModuleType, key: Any, algorithms: Sequence[str], audience: str) -> None:
        self._jwt = jwt
        self._key = key
        self._algorithms = algorithms
        self._audience = audience

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """What checks the tokens that the settings speak of; None if they speak of none.

        Raises
        ------
        SettingError
            They do not fit together, the key cannot be used, or PyJWT is not installed.
        """
        secret, file = settings.jwt_secret, settings.jwt_public_key_file
        if secret is None and file is None:
            return None
        if secret is not None and file is not None:
            raise SettingError("jwt_secret and jwt_public_key_file: expected one of them, got both")
        if not settings.jwt_audience:
            raise SettingError("jwt_audience: expected the `aud` that tokens for this service have, got none")
        try:
            import jwt
        except ImportError:
            raise SettingError("JSON Web Tokens need PyJWT: pip install 'ccq-search[jwt]'") from None
        if file is not None:
            key, algorithms = _public_key(file)
            return cls(jwt, key, algorithms, settings.jwt_audience)
        value = secret.get_secret_value().encode() if secret is not None else b""
        if len(value) < _SHORTEST_SECRET:
            raise SettingError(f"jwt_secret: expected at least {_SHORTEST_SECRET} bytes, got {len(value)}")
        return cls(jwt, value, _BY_SECRET, settings.jwt_audience)

    def read(self, token: str) -> Token:
        """What a token says; UnauthenticatedError if it is not valid, or not any more."""
        try:
            claims = self._jwt.decode(
                token,
                self._key,
                algorithms=self._algorithms,
                audience=self._audience,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "aud"]},
            )
        except self._jwt.PyJWTError as error:
            raise UnauthenticatedError(f"the token is not valid here: {error}") from None
        scope, collections = claims.get("scope", ""), claims.get("collections")
        if not isinstance(scope, str):
            raise UnauthenticatedError("the token's claim scope: expected words joined by spaces")
        if collections is not None and not (
            isinstance(collections, list) and all(isinstance(name, str) for name in collections)
        ):
            raise UnauthenticatedError("the token's claim collections: expected a list of names")
        words = set(scope.split())
        return Token(
            str(claims.get("sub", "token")),
            tuple(known for known in get_args(Scope) if known in words),
            None if collections is None else tuple(collections),
        )


def _public_key(file: Path) -> tuple[Any, Sequence[str]]:
    """The public key in a file, and what its owner signs by."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise SettingError("jwt_public_key_file needs cryptography: pip install 'ccq-search[jwt]'") from None
    try:
        key = load_pem_public_key(file.read_bytes())
    except OSError as error:
        raise SettingError(f"jwt_public_key_file: {file}: {error.strerror}") from None
    except ValueError:
        raise SettingError(f"jwt_public_key_file: {file}: expected a public key in PEM") from None
    match key:
        case rsa.RSAPublicKey():
            return key, _BY_RSA
        case ec.EllipticCurvePublicKey():
            return key, _BY_EC
        case ed25519.Ed25519PublicKey():
            return key, _BY_ED25519
        case _:
            raise SettingError(f"jwt_public_key_file: {file}: expected a key of RSA, EC or Ed25519")
