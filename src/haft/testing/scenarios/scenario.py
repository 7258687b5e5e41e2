"""A test scenario as data: one call of one tool, the world in which the call runs, and what must be true afterwards.

`spellings` makes scenarios from the three forms in which people write them, `files` reads them from files, `running`
runs one, and `comparing` finds the mismatches. This module has only the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from haft.testing.mcp_pair import ScriptedMcpServer
from haft.values import dataclass, field


class _Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


PYTHON: Final = "<python>"
"""The path of a scenario that is not in a file."""
UNSET: Final = _Unset()
"""What an expectation is that the scenario does not have, where null is a value."""

Kind = Literal["file", "directory", "link"]
Fault = Literal[
    "deadline", "kill", "full-disk", "no-memory", "partial-output", "garbage", "slow-pipes", "no-network", "host-killed"
]


@dataclass(frozen=True)
class GivenFile:
    """One file that exists before the call."""

    content: bytes = b""
    kind: Kind = "file"
    mode: int | None = None
    target: str | None = None
    """The target of a link."""


@dataclass(frozen=True)
class TextMatch:
    """What a text must be. All parts that are set must hold."""

    equals: str | None = None
    contains: tuple[str, ...] = ()
    matches: str | None = None
    """A regular expression that must be found in the text."""


@dataclass(frozen=True)
class ExpectedFile:
    """What a path must be after the call."""

    exists: bool = True
    content: TextMatch | bytes | None = None
    """None: any content. Bytes: exactly these."""
    mode: int | None = None
    kind: Kind | None = None
    target: str | None = None


@dataclass(frozen=True)
class ProgramAnswer:
    """What a program stub does when it is called."""

    stdout: str = ""
    stderr: str = ""
    exit: int = 0
    writes: Mapping[str, str] = field(default_factory=dict)
    """Files that the stub writes, with their content; relative paths begin at the stub's current directory."""
    args: tuple[str, ...] | None = None
    """If set, this answer is only for calls whose arguments begin with these."""
    seconds: float = 0
    """How long the stub waits before it answers."""


@dataclass(frozen=True)
class ProgramStub:
    """A program that stands for a real one in every sandbox of the scenario."""

    program: str
    """The name on PATH; or an absolute path, which the stub replaces."""
    answers: tuple[ProgramAnswer, ...] = (ProgramAnswer(),)
    """For each call the next answer that fits its arguments; the last one repeats."""
    real: bool = False
    """Whether the real program runs. Its calls are not recorded."""
    records: bool = False
    """Whether the stub calls the real program, and the recorded call has its answer too, under `answer`."""


@dataclass(frozen=True)
class Programs:
    """The programs of a scenario."""

    stubs: tuple[ProgramStub, ...] = ()
    others: Literal["allow", "refuse"] = "allow"
    """Whether the tool may start programs that have no stub."""


@dataclass(frozen=True)
class ProgramCall:
    """One call of a stub, as the scenario expects it. None: not compared."""

    program: str
    args: tuple[str, ...] | None = None
    stdin: TextMatch | None = None
    cwd: str | None = None
    """Relative to the workspace."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    """Variables that the program must have got; null: must not have got."""


@dataclass(frozen=True)
class Answer:
    """One answer of the scripted approver."""

    approve: bool
    message: str | None = None
    args: Mapping[str, Any] | None = None
    """Edited arguments."""
    grant: Mapping[str, Any] | None = None
    scope: Literal["once", "thread", "always"] = "once"


@dataclass(frozen=True)
class Expected:
    """What must be true after the call."""

    status: str | None = None
    """None: `done`; if the scenario has a fault, what the fault leaves."""
    error: str | None = None
    """The code of the error."""
    message: TextMatch | None = None
    """The message of the error."""
    output: TextMatch | None = None
    stderr: TextMatch | None = None
    result: Any = UNSET
    exit: int | None = None
    files: Mapping[str, ExpectedFile] = field(default_factory=dict)
    only_changed: tuple[str, ...] | Literal["any"] | None = None
    """The only paths, or glob patterns, that the call may change. None: those in `files`."""
    programs: tuple[ProgramCall, ...] | None = None
    """All calls of stubs, in their order. None: not compared."""
    decision: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the decision: `action`, `by`, `layer`, `rule`, `reason`, `source`."""
    children: Literal["none", "any"] = "none"
    """Whether a call that is done may leave processes behind, which haft then ends."""
    crashes: bool | None = None
    """Whether the tool ends by a crash: a signal, an exception that nobody caught, a missing program."""
    asked: int | None = None
    """How many approvals the scripted approver was asked for."""


@dataclass(frozen=True)
class Location:
    """Where a scenario is written."""

    path: str
    line: int = 1
    keys: Mapping[str, int] = field(default_factory=dict)
    """The lines of the scenario's parts by their dotted paths, such as `expect.files.test.js`."""

    def line_of(self, part: str) -> int:
        """The line of a part, or of the nearest part that contains it."""
        while part:
            if part in self.keys:
                return self.keys[part]
            part = part.rpartition(".")[0]
        return self.line


@dataclass(frozen=True)
class Scenario:
    """One call of one tool, and what must be true afterwards."""

    tool: str
    """The name of a tool; or the path of one, relative to `directory`, if it contains a slash."""
    args: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    directory: str = "."
    """Where relative paths of tools begin."""
    load: tuple[str, ...] = ()
    """Paths of tools, and of folders of tools, that exist in the scenario, relative to `directory`."""
    files: Mapping[str, GivenFile] = field(default_factory=dict)
    git: bool = False
    """Whether the workspace is a git repository in which the given files are committed."""
    uncommitted: Mapping[str, GivenFile] = field(default_factory=dict)
    """Files that are written after the commit."""
    programs: Programs = Programs()
    mcp: tuple[ScriptedMcpServer, ...] = ()
    """MCP servers that answer as they are told, and need no network."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the host that the tool gets without further grants."""
    approve: Literal["all", "none"] | tuple[Answer, ...] = "all"
    """The answers of the scripted approver, one for each request in their order; further requests are rejected."""
    cwd: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values for the `config_keys` of plugins."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """haft's settings by their dotted names."""
    grant: Mapping[str, Any] = field(default_factory=dict)
    """Grants of the call: network, read, write, env, path."""
    network: bool = False
    """Whether the call may use the real network."""
    unguarded: bool = False
    """Whether the tool gets arguments that break its schema, and may write although it says that it only reads."""
    timeout: float | None = None
    clock: float | None = None
    """By how many seconds haft's clock moves forward each time that the call waits."""
    fault: Fault | None = None
    fault_options: Mapping[str, Any] = field(default_factory=dict)
    expect: Expected = Expected()
    location: Location = Location(PYTHON)
    case: int | None = None
    """The index of the case in its file; None if the file has no cases."""


class Unfit(Exception):
    """This machine cannot run a scenario. The text says why."""


@dataclass(frozen=True)
class Mismatch:
    """One expectation that does not hold."""

    path: str
    """The part of the scenario, as a dotted path, such as `expect.files.test.js`."""
    expected: Any
    actual: Any
    message: str
    """The whole mismatch in words."""
    note: str = ""
    """What else a person wants to know, such as whether the call changed the file."""
    change: tuple[str, str] | None = None
    """The text of a file before and after the call, if the call must not change the file."""

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "expected": self.expected, "actual": self.actual, "message": self.message}


@dataclass(frozen=True)
class Result:
    """What came of a scenario."""

    scenario: Scenario
    mismatches: tuple[Mismatch, ...] = ()
    outcome: Mapping[str, Any] | None = None
    """The outcome of the call as JSON; None if the scenario was skipped."""
    skipped: str | None = None
    """Why the scenario could not run on this machine."""
    seconds: float = 0
    program_calls: tuple[Mapping[str, Any], ...] = ()
    """The recorded calls of the stubs."""
    workspace: str = ""
    """The path that the workspace had."""
    changed: Mapping[str, Any] = field(default_factory=dict)
    """If there are mismatches, the paths that the call changed, each as `expect.files` would have it."""

    @property
    def passed(self) -> bool:
        return not self.mismatches and self.skipped is None

    def to_json(self) -> dict[str, Any]:
        """The result in the shape of test harnesses, with `mismatches` beside it."""
        return {
            "passed": self.passed,
            "validationErrors": [each.message for each in self.mismatches],
            "executionResult": None if self.outcome is None else dict(self.outcome),
            "mismatches": [
                {**each.to_json(), "line": self.scenario.location.line_of(each.path)} for each in self.mismatches
            ],
            "skipped": self.skipped,
        }
