"""`haft serve mcp --http HOST:PORT`: streamable HTTP for both eras of the protocol, behind `http_guard`.

uvicorn carries the requests, and the `mcp` package speaks the protocol. The server listens on loopback. It listens on
another address only if the person also says under which names other machines reach it (`--allow-host`), because the
guard refuses all other names.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from haft.contracts import BadUsage
from haft.service import (
    LOOPBACK_NAMES,
    LocalClients,
    StateHome,
    Tokens,
    check_names,
    default_home,
    is_loopback,
    listen,
    place_of,
    split_address,
)
from haft.surfaces.mcp.opening import EndLimit, opened
from haft.surfaces.mcp.over_http.connections import BoundedConnection
from haft.surfaces.mcp.over_http.guard import HttpGuard, Meet
from haft.surfaces.mcp.over_http.kept_events import RETRY_MILLISECONDS, keep_events

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.applications import Starlette

    from haft.surfaces.mcp.options import ServeOptions

PATH: Final = "/mcp"
MOST_BODY_BYTES: Final = 32_000_000
"""The longest request. haft's own tools take files of 10 MB, which are longer in JSON."""
MOST_SESSIONS: Final = 1000
"""How many clients of the older protocol can be connected at once."""
SECONDS_TO_END: Final = 2


def check_tokens(tokens: Tokens) -> None:
    """Raise `BadUsage` if no client has a token: then nobody could use the server."""
    if not tokens.all():
        raise BadUsage(
            "no MCP client has a token, and over HTTP every client needs one",
            hint="`haft tokens add NAME` makes a token for the client NAME",
        )


def parse_address(text: str, names: Sequence[str] = ()) -> tuple[str, int]:
    """The host and the port of HOST:PORT. Raises `BadUsage` if the host is not this machine's loopback and `names` is
    empty."""
    host, port = split_address(text, "--http")
    if not is_loopback(host) and not names:
        raise BadUsage(
            f"haft listens only on loopback, and `{host}` is reached from other machines"
            if host
            else f"`{text}` names no host, and haft does not listen on all of them",
            hint="use `--http 127.0.0.1:PORT`; or name the host under which other machines reach this server: "
            "`--allow-host NAME`. The token of a client then travels unencrypted, unless a proxy adds TLS",
        )
    return host, port


def url_of(listening: socket.socket) -> str:
    """The address that clients are configured with."""
    return f"http://{place_of(listening)}{PATH}"


def application(server: Server[Any]) -> Starlette:
    """The routes, without their guard: only `serve_http` and tests use this function."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BODY_BYTES,
        max_sessions=MOST_SESSIONS,
        retry_interval=RETRY_MILLISECONDS,
        # The guard checks Host and Origin before, on every route.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    keep_events(server)
    return app


def serve(options: ServeOptions) -> int:
    """Serve HTTP until a signal comes."""
    assert options.http is not None
    names = check_names(options.allow_hosts)
    host, port = parse_address(options.http, options.allow_hosts)
    tokens = Tokens(StateHome(default_home(os.environ)))
    check_tokens(tokens)
    with listen(host, port) as listening:
        if not is_loopback(host) and not options.quiet:
            tell("warning: other machines can reach this server. Without a proxy that adds TLS, anyone on the way can")
            tell("         read the tokens of the clients")
        with EndLimit() as limit:
            asyncio.run(_serve(options, listening, tokens, names, limit))
    return 0


async def _serve(
    options: ServeOptions, listening: socket.socket, tokens: Tokens, names: frozenset[str], limit: EndLimit
) -> None:
    stop = asyncio.Event()
    async with opened(options, stop, limit) as served:
        greeting = served.init_options()
        # The package's session manager asks the server itself what `initialize` answers.
        vars(served.server)["create_initialization_options"] = lambda: greeting
        clients = LocalClients(served.service.home)
        try:
            await serve_http(
                served.server, listening, tokens, names=names, stop=stop, ready=tell_address, meet=clients.meet
            )
        finally:
            clients.close()


async def serve_http(
    server: Server[Any],
    listening: socket.socket,
    tokens: Tokens,
    *,
    names: frozenset[str] = LOOPBACK_NAMES,
    stop: asyncio.Event,
    ready: Callable[[str], None] | None = None,
    meet: Meet | None = None,
) -> None:
    """Serve until `stop` is set. Then the open requests end, and with them the calls that they wait for."""
    guard = HttpGuard(application(server), tokens, names=names, meet=meet)
    config = uvicorn.Config(
        guard,
        http=BoundedConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    carrier = uvicorn.Server(config)
    # uvicorn must not catch signals: haft's own handlers end the service as well.
    vars(carrier)["capture_signals"] = contextlib.nullcontext
    serving = asyncio.create_task(carrier.serve([listening]))
    watching = asyncio.create_task(guard.watch())
    stopping = asyncio.create_task(stop.wait())
    if ready is not None:
        ready(url_of(listening))
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        watching.cancel()
        carrier.should_exit = True
        guard.end_all()
        await serving


def tell_address(url: str) -> None:
    """Say where the server listens. Programs that start haft with port 0 read this line."""
    tell(f"haft serves MCP at {url}")


def tell(text: str) -> None:
    """Say something on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
