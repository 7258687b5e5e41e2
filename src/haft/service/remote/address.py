"""The address of a server, the workspace that it names, and whether a token may be sent there."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Mapping
from typing import Final

import httpx2

from haft.contracts import BadUsage, StorageFailed
from haft.values import dataclass

TOKEN_VARIABLE: Final = "HAFT_TOKEN"  # noqa: S105  the name of a variable
_API: Final = ("api", "v1")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is."""

    base: str
    """The beginning of all its addresses, without a slash at the end."""
    workspace: str | None
    """The workspace that the address names; None if it names none."""
    is_local: bool
    """Whether the server is on this machine, so that no proxy is asked for it."""


def read_address(url: str, *, allow_http: bool) -> ServerAddress:
    """The address of a server: `https://HOST:PORT`, also with a path before that of the API, and `/w/NAME` or
    `/api/v1/workspaces/NAME` at its end. Raises `BadUsage` if it is none, or if a token would be sent unencrypted."""
    try:
        found = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError) as error:
        raise BadUsage(f"the address of the server is not valid: {error}") from None
    if found.scheme not in ("http", "https") or not found.host:
        raise BadUsage("the address of a server begins with `https://` or `http://`, and names a host")
    if found.port is not None and not 0 < found.port < 65_536:
        raise BadUsage(f"the address of the server is not valid: there is no port {found.port}")
    if found.userinfo or found.query or found.fragment:
        raise BadUsage(
            "the address of a server has no user, no query and no `#`",
            hint=f"the token is `token=`, or the variable {TOKEN_VARIABLE}",
        )
    is_local = _is_loopback(found.host)
    if found.scheme == "http" and not is_local and not allow_http:
        raise BadUsage(
            f"the token would be sent unencrypted to {found.host}",
            hint="use `https://`; in a network that nobody else reads, `allow_http=True` allows it",
        )
    prefix, workspace = _split([each for each in found.path.split("/") if each])
    base = str(found.copy_with(path="/" + "/".join(prefix))).rstrip("/")
    return ServerAddress(base, workspace, is_local)


def _split(parts: list[str]) -> tuple[list[str], str | None]:
    """The path before that of the API, and the workspace that is named after it."""
    if len(parts) >= 2 and parts[-2] == "w":
        return parts[:-2], parts[-1]
    if len(parts) >= 4 and parts[-2] == "workspaces" and tuple(parts[-4:-2]) == _API:
        return parts[:-4], parts[-1]
    return (parts[:-2] if tuple(parts[-2:]) == _API else parts), None


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(token: str | None, environ: Mapping[str, str]) -> str:
    """The token that was given, or that of `HAFT_TOKEN`. Raises `BadUsage` if there is none."""
    found = environ.get(TOKEN_VARIABLE, "") if token is None else token
    if not found.strip():
        raise BadUsage(
            "a server needs a token", hint=f"pass `token=`, or set {TOKEN_VARIABLE}; `haft tokens add NAME` makes one"
        )
    found = found.strip()
    if not found.isascii() or not found.isprintable() or " " in found:
        raise BadUsage("the token has characters that no token has")  # Without the token: errors are logged.
    return found


def tls_context(verify: bool | str | os.PathLike[str] | ssl.SSLContext) -> ssl.SSLContext | bool:
    """How the certificate of a server is checked: against the certificates of this machine (True), those of a file or
    directory, or not at all (False)."""
    if isinstance(verify, bool | ssl.SSLContext):
        return verify
    place = os.fspath(verify)
    try:
        if os.path.isdir(place):
            return ssl.create_default_context(capath=place)
        return ssl.create_default_context(cafile=place)
    except (OSError, ValueError) as error:
        raise StorageFailed(f"the certificates in `{place}` cannot be read", error) from None
