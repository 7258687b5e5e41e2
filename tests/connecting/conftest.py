"""A home directory with the configuration files of agents, and haft's connections for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from haft.connecting import Choice, Connections, Launch, agent_named


class Home:
    """A person's home directory and project."""

    def __init__(self, root: Path) -> None:
        self.path = root / "home"
        self.project = root / "project"
        self.state = root / "state"
        for directory in (self.path, self.project, self.state):
            directory.mkdir()
        self.env = {"HOME": str(self.path), "PATH": os.environ["PATH"]}
        self.connections = Connections(self.state, self.env)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def choice(self, **options: bool) -> Choice:
        if options.pop("project", False):
            return Choice("project", str(self.project), **options)
        return Choice(**options)

    @staticmethod
    def launch(*, project: bool = False, version: str = "1") -> Launch:
        if project:
            return Launch(("haft", "serve", "mcp"), ("haft", "hook"))
        start = f"/opt/{version}/haft/surfaces/hook/start.py"
        hook = ("/opt/python", "-I", "-S", start)
        return Launch((f"/opt/{version}/bin/haft", "serve", "mcp"), hook, shell="/state/hook/haft-shell")

    def connect(self, name: str, launch: Launch | None = None, token: str | None = None, **options: bool):
        choice = self.choice(**options)
        launch = launch or self.launch(project=choice.scope == "project")
        plan = self.connections.plan(agent_named(name), choice, launch, token)
        self.connections.carry_out(plan)
        return plan

    def remove(self, name: str, **options: bool):
        choice = self.choice(**options)
        launch = self.launch(project=choice.scope == "project")
        plan = self.connections.plan_removal(agent_named(name), choice, launch)
        self.connections.carry_out(plan)
        return plan

    def snapshot(self) -> dict[str, bytes | str]:
        """Every file and link of the home directory and the project."""
        found: dict[str, bytes | str] = {}
        for top in (self.path, self.project):
            for path in sorted(top.rglob("*")):
                if path.is_symlink():
                    found[str(path)] = f"link to {os.readlink(path)}"
                elif path.is_file():
                    found[str(path)] = path.read_bytes()
                else:
                    found[str(path)] = "directory"
        return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
