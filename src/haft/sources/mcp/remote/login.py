"""Logs a person in at a remote MCP server, for `haft providers login`.

haft connects to the server without a token. If the server requires one, haft shows the address of its login page, waits
for the browser to come back, and stores the tokens. Nothing is opened here: the caller decides what to do with the
address.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mcp.client import Client

from haft.contracts import BadConfig, BadUsage, ToolFailed
from haft.sources.mcp.remote.http import RemoteTransport, checked_url, open_http
from haft.sources.mcp.remote.login_callback import LoginCallback
from haft.sources.mcp.remote.logins import CLIENT_CREDENTIALS, Logins
from haft.sources.mcp.remote.oauth import LoginFlow
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.sources.mcp.provider import Provider

_ANSWER_SECONDS: Final = 60.0
"""How long the server may take to answer one request. Time in which a person logs in does not count."""


@dataclass(frozen=True, slots=True)
class LoginPage:
    """The page on which a person logs in."""

    address: str
    host: str
    """The host of the page. It can be another one than the server's."""
    server_host: str


@dataclass(frozen=True, slots=True)
class LoginResult:
    """How a login ended."""

    needed: bool
    """Whether the server required a login."""
    issuer: str | None = None
    scope: str | None = None


ShowPage = Callable[[LoginPage], Awaitable[None]]


async def log_in(
    provider: Provider, state_home: str, show: ShowPage, pasted: AsyncIterator[str] | None = None
) -> LoginResult:
    """Log in at a remote provider. `pasted` gives addresses that the person pastes, if the browser runs elsewhere.
    Raises `HaftError` if that fails."""
    _check(provider)
    url = checked_url(provider)

    async def shown_page(address: str) -> None:
        await show(LoginPage(address, urlsplit(address).hostname or "", url.host))

    async with LoginCallback(provider.name, _redirect_uri(provider)) as callback:
        logins = Logins(state_home, provider.name, provider.url or "")
        flow = LoginFlow(provider, str(url), logins, callback, shown_page)
        reading = asyncio.ensure_future(_paste(callback, pasted)) if pasted is not None else None
        try:
            transport = open_http(provider, state_home, auth=flow)
            try:
                await _connect(transport)
            except Exception as error:
                explained = transport.explained(error)
                if flow.login is None or explained is not None:
                    raise explained or ToolFailed(f"the MCP server `{provider.name}` failed: {error}") from error
        finally:
            if reading is not None:
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
    if flow.login is None:
        return LoginResult(needed=False)
    return LoginResult(needed=True, issuer=flow.login.issuer, scope=flow.login.scope)


async def _connect(transport: RemoteTransport) -> None:
    """Say hello to the server and list its tools: one of the two makes it ask for a login."""
    async with Client(transport, read_timeout_seconds=_ANSWER_SECONDS) as client:
        if client.server_capabilities.tools is not None:
            await client.list_tools()


async def _paste(callback: LoginCallback, addresses: AsyncIterator[str]) -> None:
    async for address in addresses:
        if address.strip() and callback.take(address):
            return


def _check(provider: Provider) -> None:
    name = provider.name
    if provider.transport == "stdio":
        raise BadUsage(
            f"the MCP server `{name}` runs on this machine, so there is no login",
            hint="write its credentials into `env` of its configuration, as `${input:NAME}` or `${env:NAME}`",
        )
    if provider.problem is not None:
        raise BadUsage(f"the MCP server `{name}` cannot be used: {provider.problem}")
    if any(header.lower() == "authorization" for header in provider.headers):
        raise BadUsage(
            f"the MCP server `{name}` has an `Authorization` header in its configuration, so there is no login",
            hint="remove the header, then log in",
        )
    grant = provider.oauth.get("grant", "authorization_code")
    if grant not in ("authorization_code", CLIENT_CREDENTIALS):
        raise BadConfig(f"`grant` of the provider `{name}` must be `authorization_code` or `{CLIENT_CREDENTIALS}`")
    if grant == CLIENT_CREDENTIALS and not (provider.oauth.get("client_id") and provider.oauth.get("client_secret")):
        raise BadConfig(f"the grant `{CLIENT_CREDENTIALS}` of the provider `{name}` needs a client id and its secret")
    parts = urlsplit(provider.url or "")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise BadUsage(
            f"the connection to `{parts.hostname}` is not encrypted, so others could read the token on its way",
            hint="use an address that begins with `https://`",
        )


def _redirect_uri(provider: Provider) -> str | None:
    if provider.oauth.get("redirect_uri"):
        return provider.oauth["redirect_uri"]
    port = provider.oauth.get("callback_port")
    return f"http://localhost:{port}/callback" if port else None
