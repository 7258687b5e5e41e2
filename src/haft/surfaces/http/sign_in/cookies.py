"""The cookies of signing in: which names they have, and how they are read and set.

Browsers keep cookies by host and not by port, so the name has the port under which the browser reaches the server: two
servers on one machine do not take each other's place. Over TLS the name begins with `__Host-`: then no other host, and
no page without TLS, can have set the cookie.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from haft.lazy import regex

if TYPE_CHECKING:
    from starlette.responses import Response

    from haft.surfaces.http.asgi import Scope

SESSION: Final = "haft_session"
STATE: Final = "haft_oidc"
_PORT: Final = regex(r".*:([0-9]{1,5})")


def cookie_name(kind: str, scope: Scope, *, has_tls: bool) -> str:
    """The name of a cookie for the server that this request reached."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    port = _PORT.fullmatch(host)
    name = f"{kind}_{port[1] if port else ('443' if has_tls else '80')}"
    return f"__Host-{name}" if has_tls else name


def cookies(scope: Scope, name: str) -> Iterator[str]:
    """The values of a cookie in a request. There can be several: other servers of this host may have set some."""
    for header, value in scope["headers"]:
        if header == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                given, separator, content = pair.strip().partition("=")
                if separator and given == name:
                    yield content


def set_cookie(
    response: Response, name: str, value: str, *, seconds: float, same_site: Literal["strict", "lax"], has_tls: bool
) -> None:
    """Give a browser a cookie that no script can read."""
    response.set_cookie(
        name, value, max_age=max(0, int(seconds)), path="/", secure=has_tls, httponly=True, samesite=same_site
    )
