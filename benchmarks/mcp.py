"""`haft serve mcp` against fastmcp's server doing the same work, over stdio; and the start of both worlds.

`python -m benchmarks.mcp` prints this part alone. Both servers get the same bytes from the same plain client, one call
after the other. haft decides, confines and records each call; the peer only runs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Row, in_turns_blocking, print_table

PLACE = "/var/tmp"
"""Where the plugin lies: calls have a `/tmp` of their own, and do not see this one."""
FASTMCP = "fastmcp over stdio"
SERVERS = 10
TIMES = 20
"""How many calls are one measurement, so that the pipe's own rhythm does not count."""

PLUGIN = """
class Numbers:
    def get_tool_schemas(self, state):
        number = {"type": "integer"}
        parameters = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
        return [{"name": "add", "description": "Add two numbers.", "parameters": parameters}]

    async def execute_tool(self, name, arguments, state):
        return arguments["a"] + arguments["b"]
"""

PEER = '''
import subprocess
import sys
from pathlib import Path

from fastmcp import FastMCP

server = FastMCP("peer")


@server.tool
def read_file(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def shell(command: str) -> str:
    """Run a command."""
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


server.run("stdio", show_banner=False)
'''

CONFIGURATION = """
plugins = ["path:{plugin}"]

[[permissions]]
tool = "*"
action = "allow"
"""


class PlainClient:
    """A server as a process, and calls to it as lines of JSON."""

    def __init__(self, command: list[str], cwd: str, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._number = 0
        client = {"name": "benchmark", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})

    def initialized(self) -> None:
        self._send({"method": "notifications/initialized"})

    def request(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._number:
                if "result" not in answer:
                    raise RuntimeError(f"{method}: {answer}")
                return answer["result"]
        raise RuntimeError(f"the server ended before it answered {method}")

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        return result

    def end(self) -> None:
        with self._process as process:
            process.kill()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


@contextlib.contextmanager
def connected(command: list[str], cwd: str, env: dict[str, str]) -> Iterator[PlainClient]:
    """A server that is ready for calls."""
    client = PlainClient(command, cwd, env)
    try:
        client.initialized()
        client.request("tools/list", {})
        yield client
    finally:
        client.end()


def rows(base: str) -> list[Row]:
    """All measurements, in a directory that is empty."""
    workspace, env = _prepared(base)
    serve = [_program(), "serve", "mcp"]
    return [*_calls(base, workspace, env, serve), *_starts(base, workspace, env, serve)]


def _calls(base: str, workspace: str, env: dict[str, str], serve: list[str]) -> list[Row]:
    found = []
    peer_file = os.path.join(base, "peer.py")
    with connected(serve, workspace, env) as ours, connected([sys.executable, peer_file], workspace, env) as peer:
        for what, name, arguments, bar in (
            ("read_file over MCP", "read_file", {"path": "note.txt"}, 1.0),
            ("a Python tool from a path over MCP", "add", {"a": 1, "b": 2}, 1.0),
            ("shell `true` over MCP", "shell", {"command": "true"}, None),
        ):

            def mine(name: str = name, arguments: dict[str, Any] = arguments) -> None:
                for _ in range(TIMES):
                    ours.call(name, arguments)

            def theirs(name: str = name, arguments: dict[str, Any] = arguments) -> None:
                for _ in range(TIMES):
                    peer.call(name, arguments)

            haft, bare = in_turns_blocking(mine, theirs, rounds=15)
            found.append(Row(what, haft / TIMES, FASTMCP, bare / TIMES, bar))
    return found


def _starts(base: str, workspace: str, env: dict[str, str], serve: list[str]) -> list[Row]:
    def first_answer() -> None:
        PlainClient(serve, workspace, env).end()

    def pydantic() -> object:
        return subprocess.run([sys.executable, "-c", "import pydantic"], check=True, capture_output=True)

    haft, bare = in_turns_blocking(first_answer, pydantic, rounds=15)
    found = [Row("haft serve mcp, the first answer", haft, 'python -c "import pydantic"', bare, 3.0)]

    many, none = os.path.join(base, "many"), os.path.join(base, "none")
    mark = os.path.join(base, "started")
    servers = [f'[providers.server{number}]\ncommand = "touch"\nargs = ["{mark}"]\n' for number in range(SERVERS)]
    for config, written in ((many, servers), (none, [])):
        os.makedirs(os.path.join(config, "haft"))
        with open(os.path.join(config, "haft", "haft.toml"), "w") as file:
            file.write("\n".join(["plugins = []", *written]))

    def listed(config: str) -> object:
        words = [_program(), "tools", "list"]
        return subprocess.run(
            words, check=True, capture_output=True, cwd=workspace, env={**env, "XDG_CONFIG_HOME": config}
        )

    with_servers, without = in_turns_blocking(lambda: listed(many), lambda: listed(none), rounds=15)
    assert not os.path.exists(mark), "haft tools list started an MCP server"
    return [*found, Row(f"haft tools list, {SERVERS} MCP servers", with_servers, "with none", without, 2.0)]


def _prepared(base: str) -> tuple[str, dict[str, str]]:
    workspace, config = os.path.join(base, "workspace"), os.path.join(base, "config", "haft")
    os.makedirs(workspace)
    os.makedirs(config)
    os.makedirs(os.path.join(base, "plugin"))
    plugin = os.path.join(base, "plugin", "adding.py")
    for path, text in (
        (os.path.join(workspace, "note.txt"), "a line\n" * 20),
        (plugin, PLUGIN),
        (os.path.join(base, "peer.py"), PEER),
        (os.path.join(config, "haft.toml"), CONFIGURATION.format(plugin=plugin)),
    ):
        with open(path, "w") as file:
            file.write(text)
    person = os.path.join(base, "person")
    os.mkdir(person)
    home = {"HAFT_HOME": os.path.join(base, "home"), "XDG_CONFIG_HOME": os.path.dirname(config), "HOME": person}
    return workspace, {**os.environ, **home}


def _program() -> str:
    return os.path.join(sysconfig.get_path("scripts"), "haft")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=PLACE) as scratch:
        measured = rows(scratch)
    print_table(measured)
    sys.exit(0 if all(row.kept for row in measured) else 1)
