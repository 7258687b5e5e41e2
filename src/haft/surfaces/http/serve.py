"""`haft serve http`: API, MCP and console on one port.

The server listens on loopback. On another address it begins only if the requests are encrypted: with TLS of its own, or
behind a proxy that adds it. MCP comes from outside, because surfaces do not import each other: see `McpPart`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvicorn

from haft.contracts import BadUsage
from haft.service import (
    LOOPBACK_NAMES,
    NamedWorkspace,
    ServedWorkspaces,
    SignInLinks,
    StateHome,
    Tokens,
    Webhooks,
    check_names,
    default_home,
    is_loopback,
    listen,
    load_config,
    place_of,
    split_address,
    this_user,
    webhooks_in,
)
from haft.surfaces.http.api.operations.calls import RESUMED
from haft.surfaces.http.app import application
from haft.surfaces.http.connections import Connection, allow_many_connections
from haft.surfaces.http.ending import SECONDS_TO_CLOSE, Ending, UntilTheEnd, end_later
from haft.surfaces.http.mcp_routes import mcp_routes
from haft.surfaces.http.proxy import BehindProxy, check_proxies
from haft.surfaces.http.rules import SIGN_IN
from haft.surfaces.http.server import Server
from haft.surfaces.http.sign_in.settings import sign_in_for
from haft.surfaces.http.streams.hub import Hub
from haft.surfaces.http.tls import tls_context

if TYPE_CHECKING:
    import socket

    from haft.service import Config, ToolService
    from haft.surfaces.http.asgi import App
    from haft.surfaces.http.options import HttpOptions
    from haft.surfaces.http.proxy import Networks

SECONDS_FOR_ANSWERS: Final = 2
"""How long the last answers may take, after all calls have ended."""


class McpPart(Protocol):
    """MCP for one workspace of the server."""

    @property
    def service_options(self) -> Mapping[str, Any]:
        """Options for the service of the workspace."""
        ...

    def running(self, service: ToolService, tokens: Tokens, names: frozenset[str]) -> AbstractAsyncContextManager[App]:
        """The application, while it runs."""
        ...


MakeMcp = Callable[[str, str], McpPart]
"""Makes the MCP part of a workspace, from its name and its path."""


def serve(options: HttpOptions, make_mcp: MakeMcp) -> int:
    """Serve until a signal comes."""
    names = check_names(options.allow_hosts)
    host, port = split_address(options.listen, "--listen")
    tls = tls_context(options.tls_cert, options.tls_key)
    proxies = check_proxies(options.behind_proxy)
    if not is_loopback(host):
        _check_reach(options, host)
    home = StateHome(default_home(os.environ))
    # The configuration of the user alone: no repository says who may enter. There is no file of a workspace there.
    config = load_config(home.path, os.environ, trust_home=home.path)
    allow_many_connections()
    with listen(host, port) as listening:
        asyncio.run(_serve(options, config, home, listening, names, tls, proxies, make_mcp))
    return 0


def _check_reach(options: HttpOptions, host: str) -> None:
    """Raise `BadUsage` if other machines reach the server, and the tokens would travel unencrypted."""
    if options.tls_cert is None and not options.behind_proxy:
        raise BadUsage(
            f"`{host or 'every address'}` is reached from other machines, and tokens must not travel unencrypted",
            hint="use TLS: `--tls-cert FILE --tls-key FILE`; or a proxy that adds it: `--behind-proxy ADDRESS`",
        )
    if not options.allow_hosts:
        raise BadUsage(
            "other machines reach this server under a name that it does not know",
            hint="name it: `--allow-host haft.example`",
        )


def named_workspaces(options: HttpOptions, config: Config) -> Sequence[NamedWorkspace]:
    """The workspaces of the configuration; without any, the one that was named or in which haft was started."""
    listed = [] if options.is_only else config.values["workspaces"]
    return [
        NamedWorkspace(
            each["name"],
            os.path.expanduser(each["path"]),
            tuple(each.get("users", ())),
            each.get("limits", {}),
        )
        for each in listed
    ] or [NamedWorkspace("default", options.workspace)]


async def _serve(
    options: HttpOptions,
    config: Config,
    home: StateHome,
    listening: socket.socket,
    names: frozenset[str],
    tls: ssl.SSLContext | None,
    proxies: Networks,
    make_mcp: MakeMcp,
) -> None:
    named = named_workspaces(options, config)
    parts = {each.name: make_mcp(each.name, each.path) for each in named}
    has_tls = tls is not None or bool(proxies)
    with Ending() as ending:
        async with contextlib.AsyncExitStack() as stack:
            opening = ServedWorkspaces(named, each_with=lambda each: parts[each.name].service_options)
            workspaces = await stack.enter_async_context(opening)
            sign_in = sign_in_for(config, home, has_tls=has_tls)
            stack.callback(sign_in.close)
            server = Server(workspaces, sign_in, home, names, has_tls=has_tls)
            server.resumes = True
            server.hub = await stack.enter_async_context(Hub({each.name: each.service for each in workspaces}))
            tokens = Tokens(home)
            mcp = {
                each.name: await stack.enter_async_context(parts[each.name].running(each.service, tokens, names))
                for each in workspaces
            }
            server.more_routes = (*server.more_routes, lambda _server: mcp_routes(server, mcp))
            for each in workspaces:
                await each.service.paused_runs.resume_all(RESUMED)
            await _carry(options, config, server, listening, tls, proxies, ending, stack)


async def _carry(
    options: HttpOptions,
    config: Config,
    server: Server,
    listening: socket.socket,
    tls: ssl.SSLContext | None,
    proxies: Networks,
    ending: Ending,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Answer requests until a signal comes and the calls have ended. `stack` closes the services, and is closed before
    the last answers leave."""
    guard = application(server)
    outer = UntilTheEnd(guard, server)
    carrier = _carrier(BehindProxy(outer, proxies) if proxies else outer, tls)
    serving = asyncio.create_task(carrier.serve([listening]))
    watching = asyncio.create_task(guard.watch())
    asked = asyncio.create_task(ending.asked.wait())
    url = _url_of(server, listening, tls)
    _tell(options, server, url)
    telling = asyncio.create_task(_webhooks(config, server, url).run())
    try:
        await asyncio.wait([serving, asked], return_when=asyncio.FIRST_COMPLETED)
        seconds = config.values["server.drain_seconds"]
        limit = end_later(seconds + SECONDS_TO_CLOSE)
        await ending.drain(server, seconds)
        outer.is_closed = True
        await stack.aclose()
        limit.cancel()
        limit = end_later(SECONDS_TO_CLOSE)
    finally:
        asked.cancel()
        watching.cancel()
        telling.cancel()
        carrier.should_exit = True
        await serving
        await guard.end_all()
    limit.cancel()


def _carrier(app: App, tls: ssl.SSLContext | None) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SECONDS_FOR_ANSWERS,
    )
    config.load()
    config.ssl = tls
    carrier = uvicorn.Server(config)
    # uvicorn must not catch signals: haft's own handlers let the calls end first.
    vars(carrier)["capture_signals"] = contextlib.nullcontext
    return carrier


def _webhooks(config: Config, server: Server, url: str) -> Webhooks:
    workspaces = {each.name: each.path for each in server.workspaces}
    return Webhooks(server.home, webhooks_in(config), workspaces, url=config.values["server.url"] or url)


def _url_of(server: Server, listening: socket.socket, tls: ssl.SSLContext | None) -> str:
    """Where people reach the server, as far as haft knows."""
    place = place_of(listening)
    name = next((each for each in sorted(server.names - LOOPBACK_NAMES)), None)
    if name is not None and not is_loopback(listening.getsockname()[0]):
        place = f"{name}:{place.rpartition(':')[2]}"
    return f"{'http' if tls is None else 'https'}://{place}"


def _tell(options: HttpOptions, server: Server, url: str) -> None:
    """Say where the server is. Programs that start haft with port 0 read the first line."""
    _say(f"haft serves {url}")
    if options.quiet:
        return
    if len(server.workspaces.names) > 1:
        _say(f"workspaces: {', '.join(server.workspaces.names)}")
    _say(f"MCP clients use {url}/mcp")
    if options.makes_link:
        _say(f"sign in: {url}{SIGN_IN}#{SignInLinks(server.home.path).make(this_user())}")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
