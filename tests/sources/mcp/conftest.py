"""Services with one MCP server, whose behaviour a test chooses."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from haft import ToolService

SERVERS = Path(__file__).with_name("servers.py")
OLD, NEW = "2025-11-25", "2026-07-28"


class Place:
    """A workspace, a state home, and a user's configuration file with servers."""

    def __init__(self, tmp_path, monkeypatch):
        self.workspace = tmp_path / "workspace"
        self.home = tmp_path / "home"
        self.config = tmp_path / "config" / "haft" / "haft.toml"
        self.workspace.mkdir()
        self.config.parent.mkdir(parents=True)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        self.config.write_text("")

    def add(self, name="s", mode="good", era=OLD, env=None, **more):
        """Configure a server that behaves in this way."""
        table = {"command": sys.executable, "args": [str(SERVERS), mode], "env": {"ERA": era, **(env or {})}, **more}
        self.add_table(name, table)

    def add_table(self, name, table):
        lines = [f"[providers.{name}]", *(f"{key} = {toml(value)}" for key, value in table.items())]
        self.config.write_text(self.config.read_text() + "\n".join(lines) + "\n")

    def text(self, text):
        self.config.write_text(text + self.config.read_text())

    def run(self, work, **options):
        """Open a service, let `work(service)` use it, and return the result."""
        options = {"approver": lambda _request: True, **options}

        async def main():
            async with asyncio.timeout(60):
                async with ToolService.open(workspace=str(self.workspace), home=str(self.home), **options) as service:
                    return await work(service)

        return asyncio.run(main())

    def call(self, *names_and_arguments, **options):
        """Make calls of tools of the server `s`, one after another, and return the outcomes."""

        async def work(service):
            return [await service.call(f"mcp__s__{name}", arguments) for name, arguments in names_and_arguments]

        return self.run(work, **options)

    def log(self, name="s"):
        return (self.home / "provider-logs" / f"{name}.log").read_text(errors="replace")


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@pytest.fixture
def place(tmp_path, monkeypatch):
    return Place(tmp_path, monkeypatch)
