"""JSON Web Tokens: which are valid, what they allow, and settings that cannot be."""

import base64
import hashlib
import hmac
import json
import sys
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from service.errors import SettingError
from service.settings import Settings
from service.tokens import Tokens
from tests.service.harness import InProcess, assert_problem

SECRET = "0123456789abcdef" * 4
DAY = 86_400
PRIVATE = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def claims(**changes):
    made = {"aud": "ccq", "exp": time.time() + DAY, "sub": "someone", "scope": "openid search", **changes}
    return {name: value for name, value in made.items() if value is not None}


def token(key=SECRET, algorithm="HS256", **changes):
    return jwt.encode(claims(**changes), key, algorithm)


def pem(algorithm):
    public = PRIVATE[algorithm].public_key()
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def by_secret(tmp_path):
    service = InProcess(tmp_path / "data", jwt_secret=SECRET, jwt_audience="ccq")
    service.client.headers["Authorization"] = f"Bearer {token(scope='admin')}"
    service.create()
    service.create("c", "other")
    yield service
    service.close()


def get(service, path, given):
    return service.get(path, headers={"Authorization": f"Bearer {given}"})


def test_a_token_allows_what_its_scope_says(by_secret):
    assert get(by_secret, "/items", token()).status_code == 200
    refused = assert_problem(get(by_secret, "/metrics", token()), 403, "forbidden")
    assert "'someone' with search" in refused["detail"]
    assert_problem(get(by_secret, "/items", token(scope=None)), 403, "forbidden")


def test_a_token_may_be_for_some_collections(by_secret):
    mine = token(collections=["c"])
    assert get(by_secret, "/collections/c/items", mine).status_code == 200
    assert_problem(get(by_secret, "/items", mine), 403, "forbidden")
    assert_problem(get(by_secret, "/items", token(collections=[])), 403, "forbidden")


UNSIGNED = jwt.encode(claims(), "", "none")


@pytest.mark.parametrize(
    "given",
    [
        token(exp=time.time() - DAY),
        token(exp=None),
        token(aud="other"),
        token(aud=None),
        token(key="another secret of at least 32 bytes"),
        token(scope=["search"]),
        token(collections="c"),
        token(collections=[1]),
        token(nbf=time.time() + DAY),
        UNSIGNED,
        token()[:-3],
        "x.y.z",
        "word",
    ],
)
def test_what_is_not_valid_is_refused(by_secret, given):
    response = get(by_secret, "/items", given)
    assert_problem(response, 401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"
    assert "Traceback" not in response.text


def test_nobody_comes_in_without(by_secret):
    by_secret.client.headers.pop("Authorization")
    assert_problem(by_secret.get("/items"), 401, "unauthenticated")
    assert_problem(get(by_secret, "/items", "ccq_x"), 401, "unauthenticated")


@pytest.mark.parametrize("algorithm", PRIVATE)
def test_a_public_key(tmp_path, algorithm):
    file = tmp_path / "key.pem"
    file.write_bytes(pem(algorithm))
    tokens = Tokens.of(Settings(data=tmp_path, jwt_public_key_file=file, jwt_audience="ccq"))
    assert tokens.read(token(PRIVATE[algorithm], algorithm)).scopes == ("search",)
    for other in PRIVATE:
        if other != algorithm:
            with pytest.raises(Exception, match="the token is not valid here"):
                tokens.read(token(PRIVATE[other], other))


def test_a_public_key_is_no_secret(tmp_path):
    """Who knows the public key must not be able to sign with it as if it were a shared secret."""
    file = tmp_path / "key.pem"
    file.write_bytes(pem("RS256"))
    tokens = Tokens.of(Settings(data=tmp_path, jwt_public_key_file=file, jwt_audience="ccq"))
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "typ": "JWT"}, claims(exp=int(time.time()) + DAY))
    )
    signature = hmac.new(pem("RS256"), head + b"." + body, hashlib.sha256).digest()
    forged = b".".join((head, body, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()
    with pytest.raises(Exception, match="the token is not valid here"):
        tokens.read(forged)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"jwt_secret": SECRET}, "jwt_audience: expected"),
        ({"jwt_secret": "short", "jwt_audience": "ccq"}, "jwt_secret: expected at least 32 bytes, got 5"),
        ({"jwt_secret": SECRET, "jwt_public_key_file": "x", "jwt_audience": "ccq"}, "expected one of them, got both"),
        ({"jwt_public_key_file": "/nowhere", "jwt_audience": "ccq"}, "/nowhere: No such file"),
        ({"jwt_public_key_file": __file__, "jwt_audience": "ccq"}, "expected a public key in PEM"),
    ],
)
def test_settings_that_cannot_be(tmp_path, given, words):
    with pytest.raises(SettingError, match=words):
        Tokens.of(Settings(data=tmp_path, **given))


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(SettingError, match=r"pip install 'ccq-search\[jwt\]'"):
        Tokens.of(Settings(data=tmp_path, jwt_secret=SECRET, jwt_audience="ccq"))


def test_a_secret_is_not_shown(tmp_path):
    assert SECRET not in repr(Settings(data=tmp_path, jwt_secret=SECRET))
