"""A workspace with calls that were made, and their recordings."""

import asyncio
import os

import pytest

from haft import ToolService
from haft.service import Filter, StateHome, open_history
from haft.testing.reading import read_scenario_file
from haft.testing.recording import record_run
from haft.testing.running import run_scenario


class Past:
    """A workspace in which tools are called, each by a service of its own."""

    def __init__(self, place, environ):
        self.workspace, self.state, self.environ = place / "workspace", StateHome(str(place / "state")), environ
        self.workspace.mkdir()

    def write(self, path, text, mode=0o644):
        full = self.workspace / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
        full.chmod(mode)
        return full

    def tool(self, name, body, parameters="path: string? a path"):
        """A toolbox executable in shell; `body` gets the arguments as lines `name: value` on its stdin."""
        describe = f"printf 'name: {name}\\ndescription: For a test.\\n{parameters}\\n'"
        return self.write(
            f"tools/{name}", f'#!/bin/sh\n[ "$TOOLBOX_ACTION" = describe ] && {describe} && exit\n{body}\n', 0o755
        )

    def call(self, name, arguments=None, *, settings=None, **options):
        with ToolService.open_sync(
            self.workspace,
            home=self.state.path,
            environ={**os.environ, **self.environ},
            approver=lambda _request: True,
            settings=settings or {},
            installed=False,
        ) as service:
            return service.call(name, arguments or {}, **options).wait()

    def record(self, run=None, **options):
        return asyncio.run(record_run(run or self.last(), self.state, **options))

    def last(self):
        history = open_history(self.state)
        try:
            return next(each.id for each in history.runs(Filter(limit=20)) if each.parent is None)
        finally:
            history.close()

    def replay(self, recorded):
        (scenario,) = read_scenario_file(recorded.path)
        return asyncio.run(run_scenario(scenario))


@pytest.fixture
def past(tmp_path, monkeypatch):
    """The toolbox of the workspace is also named in its configuration, as the recorder reads it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = Past(tmp_path, {})
    found.write("haft.toml", '[toolbox]\npaths = ["./tools"]\n')
    monkeypatch.chdir(found.workspace)
    return found
