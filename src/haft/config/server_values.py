"""Checks for the settings of servers: `[server.oidc]` and `[[server.webhooks]]`. Each returns the value in the form
that haft uses, or raises `ValueError`. Which roles there are, `haft.service` checks."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.config.values import table, text, texts, truth
from haft.contracts import near_miss

if TYPE_CHECKING:
    from urllib.parse import SplitResult

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
WEBHOOK_EVENTS: Final = ("request.waiting", "request.answered", "run.failed", "run.undone")
_WEBHOOK: Final = ("url", "secret", "name", "events", "arguments", "private")
_SHORTEST_SECRET: Final = 16
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


def webhooks(value: Any) -> list[dict[str, Any]]:
    """Check the list of webhooks."""
    if not isinstance(value, list):
        raise ValueError("must be a list of tables: [[server.webhooks]]")  # noqa: TRY004  all checks raise the same
    return [_webhook(table(one)) for one in value]


def _webhook(given: dict[str, Any]) -> dict[str, Any]:
    known_only(given, _WEBHOOK)
    for name in ("url", "secret"):
        if name not in given:
            raise ValueError(f"needs `{name}` in each table")
    url, secret = text(given["url"]), text(given["secret"])
    private = truth(given.get("private", False))
    parts = _split(url)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and private)):
        raise ValueError("`url` must begin with https://; with `private = true` it may begin with http://")
    if len(secret) < _SHORTEST_SECRET:
        raise ValueError(f"`secret` must have at least {_SHORTEST_SECRET} characters: `openssl rand -base64 32`")
    if secret.startswith("whsec_") and not _is_base64(secret.removeprefix("whsec_")):
        raise ValueError("`secret` begins with `whsec_`, and then it must be base64")
    events = texts(given.get("events", []))
    for event in events:
        if event not in WEBHOOK_EVENTS:
            near = near_miss(event, WEBHOOK_EVENTS)
            known = f"did you mean `{near}`?" if near else f"the events are {', '.join(WEBHOOK_EVENTS)}"
            raise ValueError(f"`events` names `{event}`, which is no event: {known}")
    return {
        "url": url,
        "secret": secret,
        "name": text(given.get("name", parts.hostname)),
        "events": events,
        "arguments": truth(given.get("arguments", False)),
        "private": private,
    }


def _is_base64(secret: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(base64.b64decode(secret, validate=True))
    return False


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
    parts = _split(address)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)):
        raise ValueError(f"`{name}` must begin with https://, or be http:// on this machine, and not be {address!r}")


def _split(address: str) -> SplitResult:
    from urllib.parse import urlsplit  # Every command loads this module, and few have an address to split.

    return urlsplit(address)
