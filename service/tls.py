"""HTTPS: whether the files for it can be used is known before anything else is done."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from service.errors import SettingError
from service.settings import Settings


def server_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `uvicorn.Config` for HTTPS, none for HTTP.

    Raises
    ------
    SettingError
        One of the two files is not named, cannot be read, or is not what it should be.
    """
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        missing = "tls_certificate" if certificate is None else "tls_key"
        raise SettingError(f"{missing}: HTTPS needs a certificate and its key, got only one of them")
    for name, file in (("tls_certificate", certificate), ("tls_key", key)):
        _check_readable(name, file)
    try:
        # An empty password makes an encrypted key an error, where OpenSSL would ask for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or "no PEM"
        raise SettingError(
            f"tls_certificate and tls_key: {certificate} and {key} are no certificate with its key, not encrypted, in "
            f"PEM ({reason.lower().replace('_', ' ')})"
        ) from None
    return {"ssl_certfile": certificate, "ssl_keyfile": key}


def _check_readable(name: str, file: Path) -> None:
    try:
        file.open("rb").close()
    except OSError as error:
        raise SettingError(f"{name}: {file}: {error.strerror}") from None
