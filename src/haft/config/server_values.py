"""Checks for the settings of servers: `[server.oidc]`. Each returns the value in the form that haft uses, or raises
`ValueError`. Which roles there are, `haft.service` checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from haft.config.values import table, text, texts
from haft.contracts import near_miss

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_OIDC: Final = ("issuer", "client_id", "client_secret", "groups", "groups_claim", "scopes")


def oidc(value: Any) -> dict[str, Any]:
    """Check the table of an identity provider."""
    given = table(value)
    if not given:
        return {}
    known_only(given, _OIDC)
    for name in ("issuer", "client_id"):
        if name not in given:
            raise ValueError(f"needs `{name}`")
    safe_address(text(given["issuer"]), "issuer")
    scopes = texts(given.get("scopes", ["openid", "profile", "email"]))
    if "openid" not in scopes:
        raise ValueError("`scopes` must contain `openid`")
    secret = given.get("client_secret")
    return {
        "issuer": given["issuer"],
        "client_id": text(given["client_id"]),
        "client_secret": None if secret is None else text(secret),
        "groups": {name: texts(each) for name, each in table(given.get("groups", {})).items()},
        "groups_claim": text(given.get("groups_claim", "groups")),
        "scopes": scopes,
    }


def known_only(given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise `ValueError` if a table has a key that is not among those known."""
    for name in given:
        if name not in known:
            near = near_miss(name, known)
            raise ValueError(
                f"has no key `{name}`: " + (f"did you mean `{near}`?" if near else f"the keys are {', '.join(known)}")
            )


def safe_address(address: str, name: str) -> None:
    """Raise `ValueError` if others could read or change what is sent to an address."""
    parts = urlsplit(address)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)):
        raise ValueError(f"`{name}` must begin with https://, or be http:// on this machine, and not be {address!r}")
