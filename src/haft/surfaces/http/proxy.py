"""A proxy before the server. Requests are taken from its addresses only, and what it says about the client counts."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from haft.contracts import BadUsage
from haft.surfaces.http.api.problems import HttpError, problem

if TYPE_CHECKING:
    from haft.surfaces.http.asgi import App, Receive, Scope, Send

Networks = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]


def check_proxies(addresses: Sequence[str]) -> Networks:
    """The addresses of the proxies. Raises `BadUsage` if one of them is none."""
    found = []
    for text in addresses:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise BadUsage(
                f"`{text}` is not an address of a proxy",
                hint="`--behind-proxy` takes an address or a network, such as 127.0.0.1 or 10.0.0.0/24",
            ) from None
    return found


class BehindProxy:
    """An ASGI application around another one."""

    def __init__(self, app: App, proxies: Networks) -> None:
        self._app: Any = ProxyHeadersMiddleware(app, trusted_hosts=[str(each) for each in proxies])  # type: ignore[arg-type]
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if scope["type"] == "http" and not (client and self._is_proxy(client[0])):
            stranger = HttpError("forbidden", "this server takes requests from its proxy only")
            await problem(stranger, secrets.token_hex(16))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        found = getattr(found, "ipv4_mapped", None) or found
        return any(found in each for each in self._proxies)
