"""For tests: a workspace, a state home and a blocking service, into which tools of any format are loaded.

The service is a normal one: it validates, decides, confines and records calls. Only its approver is scripted. It opens
when it is first needed, so that a test can write files and change settings before.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from haft.contracts import ApprovalRequest, BadUsage, Conditions, Listing, Outcome
from haft.service import SyncToolService, ToolService
from haft.testing.calls.approving import Answers, ScriptedApprover
from haft.testing.calls.loading import Loading
from haft.testing.calls.repository import make_repository
from haft.testing.clock import FakeClock
from haft.testing.programs import ProgramStubs
from haft.testing.reading import scenarios_from


class ToolBench:
    """The value of the fixture `haft_tools`. Without pytest: `with ToolBench() as bench`."""

    def __init__(self, workspace: Path | None = None, home: Path | None = None) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if workspace is None or home is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="haft-bench-")
            root = Path(self._temporary.name)
            workspace, home = workspace or root / "workspace", home or root / "state"
            workspace.mkdir(exist_ok=True)
        self.workspace = workspace
        """An empty directory, where tools work. The service reads a `haft.json` or `haft.toml` in it when it opens."""
        self.approver = ScriptedApprover()
        """Answers approval requests. It approves all, until `approve` is called."""
        self.settings: dict[str, Any] = {}
        """Settings by their dotted names. They override configuration files, and are read when the service opens."""
        self.env: dict[str, str] = {}
        """Variables that the tools get with each call."""
        self.grants: dict[str, Any] = {}
        """Grants of each call, such as `{"network": True}`. Without them, tools have no network."""
        self.programs: dict[str, Any] = {}
        """Stubs for programs that the tools call, written as in a scenario. They are made when the service opens."""
        self.clock = FakeClock()
        """The clock of the service. If you `move` it, deadlines pass, requests for approval expire, and kept answers
        become too old. Programs of tools see the real time."""
        self._home = home
        self._loading = Loading()
        self._known: set[str] = set()
        self._service: SyncToolService | None = None
        self._stubs: ProgramStubs | None = None
        self._around = contextlib.ExitStack()

    @property
    def asked(self) -> Sequence[ApprovalRequest]:
        """The approval requests, in order."""
        return self.approver.requests

    def approve(self, answers: Answers) -> None:
        """Say how the next approval requests are answered."""
        self.approver.answer_with(answers)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files into the workspace."""
        for path, content in files.items():
            full = self.workspace / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_bytes(content.encode() if isinstance(content, str) else content)

    def make_repository(self) -> None:
        """Make the workspace a git repository with a commit of its present files, as `git: true` in a scenario."""
        make_repository(str(self.workspace), os.environ.get("PATH", os.defpath))

    def load(self, path: str | os.PathLike[str]) -> list[Listing]:
        """Load the tools at a path, in any format: an executable, a plugin, a template, a folder of tools, or a
        configuration file with MCP servers or command lines. Return the tools, also broken ones."""
        full = os.path.abspath(os.fspath(path))
        settings, files = repr(self._loading.settings), len(self._loading.files)
        self._loading.add(full)
        if repr(self._loading.settings) != settings:
            self.close()
        if self._service is not None:
            for file in self._loading.files[files:]:
                self._service.load(file)
        found = [each for each in self.service.tools(all=True) if each.spec.kind != "builtin"]
        loaded = [each for each in found if _is_part(each, full)]
        loaded = loaded or [each for each in found if each.spec.name not in self._known]
        self._known.update(each.spec.name for each in loaded)
        return loaded

    def call(self, name: str, /, **arguments: Any) -> Outcome:
        """Call a tool and wait for its outcome. A failure is an outcome too, not an exception."""
        return self.service.call(name, arguments, env=self.env or None, grants=self.grants or None).wait()

    def tools(self) -> dict[str, Listing]:
        """Every tool by name, also those that cannot be called."""
        return {one.spec.name: one for one in self.service.tools(all=True)}

    def program_calls(self) -> tuple[Mapping[str, Any], ...]:
        """The calls of the stubs since the service opened, in order: `program`, `args`, `stdin`, `cwd`, `env`. Raises
        `BadUsage` if they do not hold, for example because a call had no answer."""
        if self._stubs is None:
            return ()
        if problems := self._stubs.problems():
            raise BadUsage(f"program stubs: {'; '.join(problems)}")
        return self._stubs.calls()

    @property
    def service(self) -> SyncToolService:
        """The service itself, for everything that this class has no method for, such as the events of a run."""
        if self._service is None:
            self._stubs = self._made_stubs()
            self._service = ToolService.open_sync(
                self.workspace,
                home=self._home,
                environ={**os.environ, "XDG_CONFIG_HOME": str(self._home / "config"), "AMP_TOOLBOX": ""},
                approver=self.approver,
                settings={**self._loading.settings, **self.settings},
                installed=False,
                conditions=Conditions(self._stubs.stand_ins, clock=self.clock),
            ).__enter__()
            if (why := self._service.missing_conditions()) is not None:
                self.close()
                raise BadUsage(f"the programs cannot be stubbed on this machine: {why}")
            for file in self._loading.files:
                self._service.load(file)
        return self._service

    def _made_stubs(self) -> ProgramStubs:
        directory = self._around.enter_context(tempfile.TemporaryDirectory(prefix="haft-programs-"))
        (scenario,) = scenarios_from({"tool": "any", "programs": self.programs})
        return self._around.enter_context(ProgramStubs(scenario.programs, directory))

    def close(self) -> None:
        """Close the service and end all runs. The next call opens it again, with the same workspace and state."""
        service, self._service = self._service, None
        if service is not None:
            service.close()
        self._stubs = None
        self._around.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def _is_part(listing: Listing, path: str) -> bool:
    return listing.spec.origin == path or listing.spec.origin.startswith(path.rstrip("/") + "/")
