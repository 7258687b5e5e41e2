"""A server with a console in a process of its own, for tests and pictures.

    with ConsoleServer(shop, waits=True) as server:
        server.address("files")      # of a page
        server.cookies("mira")       # of a browser in which Mira has signed in

This file is also the program of that process. It has an environment of its own, so nothing of the machine's user is
read or written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import httpx

PATIENCE = 60.0


class ConsoleServer:
    """A running server over a shop. With `waits`, the calls of `corner_shop.WAITING` wait for a person."""

    def __init__(self, shop: Any, *, waits: bool = False) -> None:
        self.shop = shop
        self.workspace = shop.workspace.name
        self.home = shop.home
        env = {name: value for name, value in os.environ.items() if not name.startswith("HAFT_")}
        env |= {"HAFT_HOME": str(shop.home), "XDG_CONFIG_HOME": str(shop.home.parent / "config")}
        env |= {"HAFT_APPROVAL_EXPIRES_SECONDS": "600"}
        words = [sys.executable, __file__, str(shop.workspace), str(shop.home), *(["waits"] if waits else [])]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the server did not start"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def token(self, name: str, kind: str = "person", *roles: str) -> str:
        """The token of a new person or agent: by default of an operator."""
        from haft import Principal
        from haft.service import Tokens

        made = Tokens(self.home).add(name, Principal("root-of-tests"), kind=kind, roles=roles or ("operator",))  # type: ignore[arg-type]
        return made[1]

    def cookies(self, name: str, kind: str = "person", *roles: str) -> list[dict[str, str]]:
        """The cookies of a browser in which a new person has signed in with a token, as Playwright takes them."""
        body = {"token": self.token(name, kind, *roles)}
        with httpx.Client(timeout=PATIENCE, trust_env=False) as client:
            client.post(f"{self.url}/sign-in/session", json=body).raise_for_status()
            return [{"name": each.name, "value": each.value or "", "url": self.url} for each in client.cookies.jar]

    def client(self, name: str, kind: str = "person", *roles: str) -> httpx.Client:
        """A client of the API in this workspace, with the token of a new person or agent."""
        headers = {"Authorization": f"Bearer {self.token(name, kind, *roles)}"}
        base = f"{self.url}/api/v1/workspaces/{self.workspace}"
        return httpx.Client(base_url=base, headers=headers, timeout=PATIENCE, trust_env=False)

    def address(self, path: str = "") -> str:
        """The address of a page of the workspace."""
        return f"{self.url}/w/{self.workspace}/{path}"


async def serve(workspace: Path, home: Path, *, waits: bool) -> None:
    """Serve until standard input ends."""
    import uvicorn
    from corner_shop import WAITING

    from haft.service import NamedWorkspace, ServedWorkspaces, StateHome
    from haft.surfaces.http.app import application
    from haft.surfaces.http.server import Server
    from haft.surfaces.http.sign_in import SignIn
    from haft.surfaces.http.streams.hub import Hub

    named = [NamedWorkspace(workspace.name, str(workspace))]
    async with ServedWorkspaces(named, home=home, installed=False) as opened, contextlib.AsyncExitStack() as hubs:
        server = Server(opened, SignIn(StateHome(str(home))), StateHome(str(home)))
        server.hub = await hubs.enter_async_context(Hub({each.name: each.service for each in opened}))
        guard = application(server)
        listening = socket.create_server(("127.0.0.1", 0))
        carrier = uvicorn.Server(uvicorn.Config(guard, log_level="error", access_log=False, ws="none"))
        watching = asyncio.create_task(guard.watch())
        serving = asyncio.create_task(carrier.serve([listening]))
        service = opened.find(workspace.name).service
        for number, (who, tool, arguments, trial) in enumerate(WAITING if waits else (), start=1):
            service.call(tool, arguments, who=who, trial=trial)
            while len(await service.approvals.waiting()) < number:  # One after the other: the first waits longest.
                await asyncio.sleep(0.02)
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        carrier.should_exit = True
        await serving
        watching.cancel()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2]), waits="waits" in sys.argv[3:]))
