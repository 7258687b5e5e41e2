"""A workspace, a home of its own and toolboxes in both; a service over them whose approver approves everything."""

import asyncio
import json
import logging
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from haft import ToolService
from haft.surfaces.cli.main import run


@dataclass
class Said:
    """What a command printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Box:
    """Toolboxes, and the ways to call what lies in them."""

    workspace: Path
    home: Path
    state: Path
    capture: pytest.CaptureFixture
    asked: list = field(default_factory=list)
    """What the approver was asked."""

    def tool(self, name, text, where=".agents/tools", mode=0o755):
        """An executable, from `~/…` or from the workspace."""
        folder = self.home / where[2:] if where.startswith("~/") else self.workspace / where
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    async def _yes(self, request):
        self.asked.append(request)
        return True

    def run(self, body, **options):
        """What `body` makes of a service."""
        options.setdefault("approver", self._yes)

        async def main():
            async with ToolService.open(self.workspace, home=self.state, **options) as service:
                return await body(service)

        return asyncio.run(main())

    def call(self, name, arguments=None, **options):
        async def body(service):
            return await service.call(name, arguments or {}, **options)

        return self.run(body)

    def listed(self, name, **options):
        """The listing of that name, whatever its state."""

        async def body(service):
            return [one for one in service.tools(all=True) if one.spec.name == name]

        (found,) = self.run(body, **options)
        return found

    def haft(self, *words):
        """The command line, in this process."""
        self.capture.readouterr()
        code = run(words)
        out, err = self.capture.readouterr()
        assert "haft itself failed" not in err
        return Said(code, out, err)


@pytest.fixture
def box(tmp_path, monkeypatch, capsys):
    workspace, home, state = tmp_path / "workspace", tmp_path / "home", tmp_path / "state"
    (workspace / ".git").mkdir(parents=True)
    home.mkdir()
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HAFT_HOME", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("AMP_TOOLBOX", raising=False)
    log = logging.getLogger("haft")
    monkeypatch.setattr(log, "handlers", log.handlers)
    monkeypatch.setattr(log, "propagate", log.propagate)
    return Box(workspace, home, state, capsys)


@pytest.fixture
def needs():
    """Skips, with a word, where a program is not on this machine."""

    def needs(program):
        if shutil.which(program, path=os.environ["PATH"]) is None:
            pytest.skip(f"{program} is not installed")

    return needs
