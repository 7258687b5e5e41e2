"""What an agent tells a hook, and what the hook answers, in a form that is the same for all agents. `formats/` reads
and writes the forms of the single agents."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from haft.values import dataclass, field

Phase = Literal["before", "after", "other"]
"""Whether the agent is about to use a tool, or has used it. `other`: something else, which haft does not act on."""


@dataclass(frozen=True, slots=True)
class ShellUse:
    """A command that an agent's own shell is about to run."""

    command: str
    cwd: str
    """Absolute."""
    timeout: float | None = None
    """The agent's own time limit in seconds; None if it has none."""
    is_background: bool = False
    argument: str = "command"
    """The argument of the agent's tool that holds the command."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a call of an agent's own tool means for haft."""

    shell: ShellUse | None = None
    decided_as: str | None = None
    """The tool of haft that does the same; None if there is none."""
    decided_with: Sequence[Mapping[str, Any]] = ()
    files: Sequence[str] = ()
    """The files that the call may change: absolute paths."""
    changes: bool = True
    """Whether the call may change something."""
    is_ours: bool = False
    """Whether the tool is one of haft's own, over MCP: haft decides about the call when it comes."""
    perhaps_ours: str = ""
    """The name of the tool without what the agent puts before it, if the tool is either haft's own or one of a server
    whose name begins as haft's does."""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One message of an agent."""

    phase: Phase
    tool: str
    arguments: Mapping[str, Any]
    session: str
    cwd: str
    meaning: Meaning
    call: str = ""
    """The agent's id of the call; empty if the agent gives none."""
    failure: str | None = None
    """After the call: why it failed."""
    mode: str = ""
    """The agent's permission mode."""
    name: str = ""
    """The agent's own name of the event."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the hook answers."""

    action: Literal["none", "deny", "ask", "rewrite"]
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    """The new arguments, if they are rewritten. They may come with `ask` too."""
    allows: bool = False
    """For `rewrite`: whether the answer also allows the call, so that the agent does not ask."""
    note: str = ""
    """After the call: a text for the model."""


@dataclass(frozen=True, slots=True)
class Output:
    """What `start.py` prints, and how it ends."""

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)


class Format(Protocol):
    """The form in which one agent talks to its hooks."""

    can_ask: bool
    """Whether a hook can make the agent ask a person."""

    def read(self, given: Mapping[str, Any], cwd: str) -> HookEvent:
        """The event in what the agent wrote. Raises `ValueError` if it is not as this agent writes it."""
        ...

    def write(self, event: HookEvent, reply: Reply) -> Output:
        """The answer as this agent reads it."""
        ...


def text_in(table: Mapping[str, Any], *names: str) -> str:
    """The first text among these values; empty if there is none."""
    return next((value for name in names if isinstance(value := table.get(name), str) and value), "")


def absolute(path: str, cwd: str) -> str:
    """An absolute path, for a path that an agent gave."""
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))
