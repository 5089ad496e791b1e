"""HTTPS and web pages of other origins."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import ValidationError

from service import tls
from service.errors import SettingError
from service.server import serve
from service.settings import Settings
from tests.service.harness import InProcess, ServerProcess


def write_pair(directory, name, password=None):
    """A certificate for 127.0.0.1 and its key, as two files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    files = directory / f"{name}.crt", directory / f"{name}.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    return files


def test_a_server_speaks_https(tmp_path):
    certificate, key = write_pair(tmp_path, "a")
    server = ServerProcess(
        tmp_path / "data", scheme="https", CCQ_TLS_CERTIFICATE=str(certificate), CCQ_TLS_KEY=str(key)
    )
    try:
        assert server.url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=certificate)
        assert httpx.get(server.url + "/livez", verify=trusting).json() == {"status": "alive"}
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https", "http") + "/livez")
    finally:
        assert server.stop() == 0


@pytest.fixture
def files(tmp_path):
    a, b = write_pair(tmp_path, "a"), write_pair(tmp_path, "b")
    encrypted = write_pair(tmp_path, "c", b"password")
    (tmp_path / "text").write_text("words")
    return {
        "certificate": a[0],
        "key": a[1],
        "other key": b[1],
        "encrypted certificate": encrypted[0],
        "encrypted key": encrypted[1],
        "text": tmp_path / "text",
        "nothing": tmp_path / "nothing",
        "directory": tmp_path,
        "none": None,
    }


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        ("certificate", "none", "tls_key: HTTPS needs a certificate and its key"),
        ("none", "key", "tls_certificate: HTTPS needs a certificate and its key"),
        ("nothing", "key", r"tls_certificate: .*nothing: No such file"),
        ("certificate", "directory", "tls_key: .*: Is a directory"),
        ("certificate", "other key", "key values mismatch"),
        ("certificate", "text", "no certificate with its key"),
        ("text", "key", "no certificate with its key"),
        ("encrypted certificate", "encrypted key", "not encrypted"),
    ],
)
def test_files_that_cannot_be_used_are_named_in_one_line(files, tmp_path, certificate, key, words):
    settings = Settings(data=tmp_path / "data", port=0, tls_certificate=files[certificate], tls_key=files[key])
    with pytest.raises(SettingError, match=words) as refused:
        serve(settings)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "data").exists()


def test_files_that_can_be_used(files, tmp_path):
    assert tls.server_options(Settings(data=tmp_path)) == {}
    given = {"tls_certificate": files["certificate"], "tls_key": files["key"]}
    assert set(tls.server_options(Settings(data=tmp_path, **given)).values()) == set(given.values())


# -- web pages -------------------------------------------------------------------------------------------------------

PREFLIGHT = {
    "Origin": "https://app.example",
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


def test_pages_of_named_origins_may_call(tmp_path):
    service = InProcess(tmp_path / "data", cors_origins="https://app.example, http://localhost:5173")
    try:
        allowed = service.request("OPTIONS", "/search", headers=PREFLIGHT)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        assert {"authorization", "x-api-key"} <= set(
            allowed.headers["access-control-allow-headers"].lower().split(", ")
        )
        response = service.get("/nothing", headers={"Origin": "http://localhost:5173"})
        assert response.headers["access-control-allow-origin"] == "http://localhost:5173"
        assert "X-Request-Id" in response.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in response.headers
        other = service.request("OPTIONS", "/search", headers={**PREFLIGHT, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers
    finally:
        service.close()


def test_no_page_may_unless_it_is_named(bare):
    response = bare.request("OPTIONS", "/search", headers=PREFLIGHT)
    assert response.status_code == 405
    assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/", "https://a b", "null"])
def test_origins_that_are_none(tmp_path, origin):
    with pytest.raises(ValidationError):
        Settings(data=tmp_path, cors_origins=origin)


def test_origins_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CCQ_CORS_ORIGINS", "https://a.example,https://b.example")
    assert Settings(data=tmp_path).cors_origins == ("https://a.example", "https://b.example")
    monkeypatch.setenv("CCQ_CORS_ORIGINS", "")
    assert Settings(data=tmp_path).cors_origins == ()
