"""What analysis says of a command line: its parts, and of each whether it only reads."""

from __future__ import annotations

from typing import Final, Literal

from haft.contracts import EVALUATED_VARIABLES as EVALUATED_VARIABLES
from haft.values import dataclass

PartKind = Literal["command", "redirection", "syntax"]

Danger = Literal[
    "recursive-delete",
    "raw-device",
    "format",
    "fork-bomb",
    "system-write",
    "home-dotfile",
    "outside-workspace",
    "privilege",
    "shutdown",
    "fetch-and-run",
    "not-understood",
]

DANGERS: Final[dict[Danger, str]] = {
    "recursive-delete": "deletes whole directories",
    "raw-device": "reads or writes a device past its filesystem",
    "format": "makes a filesystem or a partition anew",
    "fork-bomb": "starts copies of itself without end",
    "system-write": "writes to a place of the system",
    "home-dotfile": "writes to a start-up or settings file in the home directory",
    "outside-workspace": "leaves the workspace",
    "privilege": "takes on another user's rights",
    "shutdown": "stops the machine, or what runs on it",
    "fetch-and-run": "runs what it fetches, or text that was put together",
    "not-understood": "cannot be told apart into commands",
}
"""The classes that ask even under a rule that allows, unless the rule names them; and what each does, in words."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a line would do: a simple command, a redirection, or syntax that stays in the dark."""

    kind: PartKind
    text: str
    """As it stands in the line."""
    words: tuple[str, ...]
    """Of a command: assignments before it, its program, its arguments, without quotes; of a redirection: its sign and
    its target. A word that holds an expansion stands here as it was written."""
    safe: bool
    """Whether it only reads, inside the workspace, and starts nothing that was not looked at."""
    reason: str
    """Why it is safe, or why not: a sentence without a capital and without a stop."""
    dangers: tuple[Danger, ...] = ()
    literal: bool = True
    """Whether every word is what it will be when it runs. Where the program itself is not, no pattern can match it."""
    program: str | None = None
    """The program as it is named, where that is certain."""
    starts_others: bool = False
    """Whether its program can run other programs on its own account, as git does: safe only in the sandbox."""
    possible: tuple[Danger, ...] = ()
    """The classes that it may fall into although its words do not say so, since something of it is put together when it
    runs, or is not understood: a rule that rejects one of them rejects it."""


def unread(text: str, reason: str) -> Part:
    """A line of which nothing is known."""
    return Part("syntax", text, (), False, reason, ("not-understood",), literal=False, possible=tuple(DANGERS))


@dataclass(frozen=True, slots=True)
class Analysis:
    """Of a whole line."""

    parts: tuple[Part, ...]
    understood: bool
    """Whether all of it was parsed. Where not, there is one part, of kind `syntax`, that says why."""

    @property
    def safe(self) -> bool:
        """Whether every part only reads."""
        return bool(self.parts) and all(part.safe for part in self.parts)


@dataclass(frozen=True, slots=True)
class Ground:
    """Where the line would run."""

    workspace: str
    """Absolute, links resolved."""
    cwd: str = "."
    """Relative to the workspace."""
    confined: bool = True
    """Whether a read-only sandbox will hold what passes. Without one, programs that start others ask, and so do those
    that tell of the whole machine: only lines pass whose words name files of the workspace and nothing else."""
    home: str = "/nonexistent"
    """The person's own home directory: writes to its dot files are named as such."""
