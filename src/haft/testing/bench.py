"""For tests: a workspace, a state home and a blocking service, into which tools of any format are loaded.

The service is a normal one: it validates, decides, confines and records calls. Only its approver is scripted. It opens
when it is first needed, so that a test can write files and change settings before.
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from haft.contracts import ApprovalRequest, BadUsage, Conditions, Listing, Outcome, Tool
from haft.service import SyncToolService, ToolService
from haft.testing.calls.approving import Answers, ScriptedApprover
from haft.testing.calls.loading import Loading
from haft.testing.calls.repository import make_repository
from haft.testing.calls.world import write_files
from haft.testing.clock import FakeClock
from haft.testing.programs import ProgramStubs
from haft.testing.reading import scenarios_from

_READ_AT_OPENING: Final = ("settings", "programs", "clock", "approver", "workspace")


class ToolBench:
    """The value of the fixture `haft_tools`. Without pytest: `with ToolBench() as bench`.

    `environ` has the variables of the host: by default those of this process, without the configuration and the
    toolboxes of its user."""

    def __init__(
        self, workspace: Path | None = None, home: Path | None = None, *, environ: Mapping[str, str] | None = None
    ) -> None:
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
        self._environ = environ
        self._loading = Loading()
        self._functions: list[Tool | Callable[..., Any]] = []
        self._known: dict[str, str] = {}  # The tools by name, each with the path that was loaded.
        self._opened_with: dict[str, Any] = {}
        self._service: SyncToolService | None = None
        self._stubs: ProgramStubs | None = None
        self._around = contextlib.ExitStack()

    @property
    def asked(self) -> Sequence[ApprovalRequest]:
        """The approval requests, in order."""
        return self.approver.requests

    def approve(self, answers: Answers) -> None:
        """Say how the next approval requests are answered: `"all"`, `"none"`, or a list of answers, each as in a
        scenario or an `Answer`."""
        self.approver.answer_with(answers)

    def write(self, files: Mapping[str, Any]) -> None:
        """Write files into the workspace. They have the forms of `files` in a scenario; a content can also be bytes."""
        (scenario,) = scenarios_from({"tool": "any", "files": files})
        write_files(os.fspath(self.workspace), scenario.files)

    def make_repository(self) -> None:
        """Make the workspace a git repository with a commit of its present files, as `git: true` in a scenario."""
        make_repository(str(self.workspace), os.environ.get("PATH", os.defpath))

    def load(self, tool: str | os.PathLike[str] | Tool | Callable[..., Any]) -> list[Listing]:
        """Load a function with `@tool`, or the tools at a path, in any format: an executable, a plugin, a template, a
        folder of tools, or a configuration file with MCP servers or command lines. Return the tools, also broken ones.
        MCP servers are started for that."""
        if not isinstance(tool, str | os.PathLike):
            return [self._load_function(tool)]
        full = os.path.abspath(os.fspath(tool))
        settings, files = repr(self._loading.settings), len(self._loading.files)
        servers = set(self._loading.settings.get("providers", ()))
        self._loading.add(full)
        if repr(self._loading.settings) != settings:
            self.close()
        if self._service is not None:
            for file in self._loading.files[files:]:
                self._service.load(file)
        for server in self._loading.settings.get("providers", {}).keys() - servers:
            self.service.look_again(f"mcp__{server}__")  # Starts the server, which says only then what its tools are.
        found = [each for each in self.service.tools(all=True) if each.spec.provenance != "builtin"]
        loaded = [each for each in found if _is_part(each, full)]
        loaded = loaded or [each for each in found if self._known.get(each.spec.name, full) == full]
        self._known.update(dict.fromkeys((each.spec.name for each in loaded), full))
        return loaded

    def _load_function(self, function: Tool | Callable[..., Any]) -> Listing:
        if not isinstance(function, Tool) and not callable(function):
            raise BadUsage(
                f"`load` cannot load {function!r}",
                hint="it takes the path of a tool, or a function, such as one with `@tool`",
            )
        listing = self.service.add(function)
        self._functions.append(function)
        self._known[listing.spec.name] = listing.spec.origin
        return listing

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
        if self._service is not None:
            for name, value in self._opened_with.items():
                if getattr(self, name) != value:
                    hint = "set it before the first call, or call `close()` before: the next call opens a new service"
                    raise BadUsage(f"`{name}` was changed after the service had read it", hint=hint)
        else:
            self._stubs = self._made_stubs()
            own = {"XDG_CONFIG_HOME": str(self._home / "config"), "AMP_TOOLBOX": ""}
            self._service = ToolService.open_sync(
                self.workspace,
                home=self._home,
                environ={**os.environ, **own} if self._environ is None else dict(self._environ),
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
            for function in self._functions:
                self._service.add(function)
            for name in _READ_AT_OPENING:
                value = getattr(self, name)
                self._opened_with[name] = copy.deepcopy(value) if isinstance(value, dict) else value
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
