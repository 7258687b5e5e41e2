"""What the author of a tool source says about it, so that the suite can check it; and what the suite answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from haft.sources import SourceHost, ToolSource
from haft.values import dataclass, field

Edit = Callable[[Path], None]
"""A function that writes files into a workspace, or changes or removes them there."""


@dataclass(frozen=True)
class SourceCase:
    """One working tool of a source, and ways to change it. A check whose parts are None is left out."""

    source: str
    """The name of the source."""
    tool: str
    """The name of the tool in haft's list."""
    write: Edit
    """Writes the tool into an empty workspace."""
    opened: Callable[[SourceHost], ToolSource] | None = None
    """Makes the source, mostly its class. None: the source belongs to haft."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings with which the source finds the tool, by their dotted names. In texts, `<workspace>` stands for the
    path of the workspace."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the host."""
    has_sessions: bool = False
    """Whether the source starts processes that outlive calls, even to list tools."""
    answers_late: bool = False
    """Whether `refresh` may leave the tool out, because a program must answer first. Then the tool must be there after
    `find_unlisted` was awaited with its name."""
    path: str | None = None
    """The path of the tool in the workspace, if the tool can be checked by its path."""
    loads: bool = True
    """Whether the tool can also be called by its path, without any settings."""
    change: Edit | None = None
    """Changes the tool, so that its description is another one."""
    spoil: Edit | None = None
    """Changes the tool, so that it cannot be called any more."""
    remove: Edit | None = None
    """Removes the tool."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for a call that is done."""
    output: str | None = None
    """A part of the output of that call."""
    wrong_arguments: Mapping[str, Any] | None = None
    """Arguments that the schema of the tool does not allow."""
    failing_arguments: Mapping[str, Any] | None = None
    """Arguments that are valid, and with which the tool fails."""
    slow_arguments: Mapping[str, Any] | None = None
    """Arguments with which the tool works for at least a minute, unless it is cancelled."""


@dataclass(frozen=True)
class Verdict:
    """What one check found out about a source."""

    check: str
    """The name of the check, such as `notices-changes`."""
    promise: str
    """What the check demands of every source."""
    problems: tuple[str, ...] = ()
    """Why the source does not keep the promise."""
    skipped: str | None = None
    """Why the check did not run."""

    @property
    def passed(self) -> bool:
        return not self.problems and self.skipped is None

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "promise": self.promise,
            "passed": self.passed,
            "problems": list(self.problems),
            "skipped": self.skipped,
        }
