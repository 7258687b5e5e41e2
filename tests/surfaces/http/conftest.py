"""A server of the HTTP surface on a free port of loopback, over a workspace and a state home of the test, and clients
with tokens for it."""

import asyncio
import contextlib
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn

from haft import Principal
from haft.service import ServedWorkspaces, StateHome, Tokens
from haft.surfaces.http.app import application
from haft.surfaces.http.server import Server
from haft.surfaces.http.sign_in import SignIn
from haft.surfaces.http.streams.hub import Hub


@dataclass
class Running:
    """A server that runs in a thread of its own."""

    url: str
    workspace: Path
    home: Path
    server: Server
    loop: asyncio.AbstractEventLoop

    def token(self, name: str = "ann", **rights) -> str:
        """A new token of this name. `rights` are those of `Tokens.add`: kind, roles, workspaces, tools, seconds."""
        return Tokens(self.home).add(name, Principal("tester"), **rights)[1]

    def client(self, name: str = "ann", **rights) -> httpx.Client:
        """A client with a token of its own."""
        headers = {"Authorization": f"Bearer {self.token(name, **rights)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def run(self, awaitable):
        """The result of something that is awaited in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(awaitable, self.loop).result(60)


@contextlib.contextmanager
def serving(directory: Path, *, workspaces=None, sign_in=None, **options):
    """A running server over `directory/workspace` and `directory/home`. `options` are those of `ToolService.open`."""
    workspace, home = directory / "workspace", directory / "home"
    workspace.mkdir(exist_ok=True)
    started: dict = {}
    ready = threading.Event()

    options["settings"] = {"approval.expires_seconds": 600.0, **options.get("settings", {})}

    async def main():
        opening = (
            ServedWorkspaces(workspaces, home=home, **options)
            if workspaces
            else ServedWorkspaces.only(workspace, home=home, **options)
        )
        async with opening as opened, contextlib.AsyncExitStack() as hubs:
            server = Server(opened, (sign_in or SignIn)(StateHome(str(home))), StateHome(str(home)))
            server.hub = await hubs.enter_async_context(Hub({each.name: each.service for each in opened}))
            guard = application(server)
            listening = socket.create_server(("127.0.0.1", 0))
            config = uvicorn.Config(guard, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=2)
            carrier = uvicorn.Server(config)
            carrier.capture_signals = contextlib.nullcontext
            port = listening.getsockname()[1]
            started["running"] = Running(
                f"http://127.0.0.1:{port}", workspace, home, server, asyncio.get_running_loop()
            )
            started["carrier"] = carrier
            watching = asyncio.create_task(guard.watch())
            ready.set()
            try:
                await carrier.serve([listening])
            finally:
                watching.cancel()
                await guard.end_all()

    def begin():
        try:
            asyncio.run(main())
        except BaseException as error:
            started["error"] = error
            raise
        finally:
            ready.set()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    ready.wait(60)
    if "running" not in started:
        raise started["error"]
    try:
        yield started["running"]
    finally:
        started["carrier"].should_exit = True
        thread.join(60)


@pytest.fixture(scope="session")
def serve():
    """`serving`, for tests in other directories."""
    return serving


@pytest.fixture
def own_server(tmp_path):
    """`own_server(**options)` starts a server of its own for a test."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(serving(tmp_path, **options))


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One server for all tests of a module."""
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(scope="module")
def client(running):
    """A client of this server that may call tools."""
    with running.client() as found:
        yield found
