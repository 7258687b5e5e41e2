"""A server with a console, on a free port of loopback and in a thread of its own, for tests and pictures."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from corner_shop import WAITING

from haft import Principal
from haft.service import NamedWorkspace, ServedWorkspaces, StateHome, Tokens
from haft.surfaces.http.app import application
from haft.surfaces.http.server import Server
from haft.surfaces.http.sign_in import SignIn


@dataclass
class ConsoleServer:
    """A running server."""

    url: str
    workspace: str
    home: Path
    server: Server
    loop: asyncio.AbstractEventLoop

    def token(self, name: str, kind: str = "person", *roles: str) -> str:
        """The token of a new person or agent."""
        return Tokens(self.home).add(name, Principal("root-of-tests"), kind=kind, roles=roles or ("operator",))[1]

    def cookies(self, name: str, kind: str = "person", *roles: str) -> list[dict[str, str]]:
        """The cookies of a browser in which a new person has signed in with a token, as Playwright takes them."""
        body = {"token": self.token(name, kind, *roles)}
        with httpx.Client(timeout=60, trust_env=False) as client:
            client.post(f"{self.url}/sign-in/session", json=body).raise_for_status()
            return [{"name": each.name, "value": each.value or "", "url": self.url} for each in client.cookies.jar]

    def address(self, path: str = "") -> str:
        """The address of a page of the workspace."""
        return f"{self.url}/w/{self.workspace}/{path}"

    def run(self, awaitable: Any) -> Any:
        """The result of something that is awaited in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(awaitable, self.loop).result(60)

    def wait_for_a_person(self, number: int = len(WAITING)) -> None:
        """Let agents make the calls that wait for a person, and return when they wait."""

        async def begin() -> None:
            service = self.server.workspaces.find(self.workspace).service
            for who, tool, arguments, trial in WAITING[:number]:
                service.call(tool, arguments, who=who, trial=trial)
            while len(await service.approvals.waiting()) < number:  # noqa: ASYNC110  another process may answer
                await asyncio.sleep(0.02)

        self.run(begin())


@contextlib.contextmanager
def serving_console(workspace: Path, home: Path, **options: Any) -> Iterator[ConsoleServer]:
    """A running server of one workspace. `options` are those of `ToolService.open`."""
    started: dict[str, Any] = {}
    ready = threading.Event()

    async def main() -> None:
        named = [NamedWorkspace(workspace.name, str(workspace))]
        settings = {"approval.expires_seconds": 600, **options.pop("settings", {})}
        async with ServedWorkspaces(named, home=home, installed=False, settings=settings, **options) as opened:
            server = Server(opened, SignIn(StateHome(str(home))), StateHome(str(home)))
            guard = application(server)
            listening = socket.create_server(("127.0.0.1", 0))
            config = uvicorn.Config(guard, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=2)
            carrier = uvicorn.Server(config)
            carrier.capture_signals = contextlib.nullcontext
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            started["server"] = ConsoleServer(url, workspace.name, home, server, asyncio.get_running_loop())
            started["carrier"] = carrier
            watching = asyncio.create_task(guard.watch())
            ready.set()
            try:
                await carrier.serve([listening])
            finally:
                watching.cancel()
                await guard.end_all()

    def begin() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            started["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    ready.wait(60)
    if "error" in started:
        raise started["error"]
    try:
        yield started["server"]
    finally:
        started["carrier"].should_exit = True
        thread.join(60)
