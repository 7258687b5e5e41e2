"""The certificate and the key of a server. Mistakes are found before the server begins, and say which file is wrong."""

from __future__ import annotations

import ssl

from haft.contracts import BadUsage


class BadCertificate(BadUsage):
    """A certificate or key that cannot be used."""


def tls_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """How the server speaks TLS; None if it does not. Raises `BadCertificate` if it cannot with these files."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-cert" if certificate is None else "--tls-key"
        raise BadUsage(f"TLS needs a certificate and its key: `{missing}` is missing")
    for path in (certificate, key):
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError as error:
            raise BadCertificate(
                f"{path} cannot be read: {error.strerror or error}", hint="let the user that runs haft read this file"
            ) from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except _HasPassword:
        raise BadCertificate(
            f"the key {key} is encrypted with a password", hint="store it without one, readable for haft only"
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadCertificate(f"the key {key} does not belong to the certificate {certificate}") from None
        raise BadCertificate(
            f"{certificate} and {key} are no certificate and key: {error.reason or error}",
            hint="both are needed in PEM form; the certificate first, then those of the authorities that signed it",
        ) from None
    return context


class _HasPassword(Exception):
    """The key is encrypted."""


def _no_password() -> str:
    raise _HasPassword
