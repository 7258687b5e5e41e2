"""A server in a process of its own, which is ended and begun again on the same port."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from haft import Principal
from haft.service import StateHome, Tokens

W = "/api/v1/workspaces/default"


@dataclass
class Restarted:
    """The server, and what its clients need to know."""

    forge: subprocess.Popen
    workspace: Path
    home: Path
    port: int
    token: str
    pid: int = 0
    log: list = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Begin a server, and wait until it answers."""
        self.forge.stdin.write(json.dumps([str(self.workspace), str(self.home), self.port]) + "\n")
        self.forge.stdin.flush()
        _, self.pid = json.loads(self.forge.stdout.readline())
        while True:
            with contextlib.suppress(httpx.TransportError), self.client() as client:
                if client.get("/readyz").status_code == 200:
                    return
            time.sleep(0.01)

    def end(self, number: int) -> int:
        """Send a signal, wait until the server is gone, and return how it ended."""
        os.kill(self.pid, number)
        return self.wait()

    def wait(self) -> int:
        """Wait until the server is gone; how it ended."""
        _, code = json.loads(self.forge.stdout.readline())
        self.pid = 0
        return code

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False)


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    """The program that forks servers."""
    program = str(Path(__file__).with_name("server.py"))
    environment = {
        **os.environ,
        "HAFT_SERVER_DRAIN_SECONDS": "8",
        "XDG_CONFIG_HOME": str(tmp_path_factory.mktemp("config")),
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, program], env=environment, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def restarted(forge, tmp_path):
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    # A person, so that the process of this test, which acts for everyone, is nobody's agent.
    roles = ["caller", "approver"]
    _, token = Tokens(StateHome(str(home))).add("ann", Principal("tester"), kind="person", roles=roles)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = Restarted(forge, workspace, home, port, token)
    yield found
    if found.pid:
        found.end(signal.SIGKILL)
