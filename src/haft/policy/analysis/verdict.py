"""The result of analysing a command line: its parts, and whether each of them only reads."""

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
    "raw-device": "reads or writes a device directly, not through its filesystem",
    "format": "creates a filesystem or a partition",
    "fork-bomb": "starts copies of itself endlessly",
    "system-write": "writes to a system directory",
    "home-dotfile": "writes to a start-up or settings file in the home directory",
    "outside-workspace": "leaves the workspace",
    "privilege": "uses the rights of another user",
    "shutdown": "stops the machine or its programs",
    "fetch-and-run": "runs downloaded code, or text that is composed when it runs",
    "not-understood": "cannot be split into commands",
}
"""The classes of danger, each with a description of what such a command does. A command of such a class needs approval
even if a rule allows it, unless the rule names the class."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a command line would do: a simple command, a redirection, or syntax that haft does not analyse."""

    kind: PartKind
    text: str
    """The text of this part in the line."""
    words: tuple[str, ...]
    """For a command, its assignments, program and arguments, without quotes; for a redirection, its operator and
    target. A word with an expansion appears here as it was written."""
    safe: bool
    """Whether this part only reads, inside the workspace, and starts no program that was not analysed."""
    reason: str
    """Why this part is safe or not safe: a sentence that begins with a small letter and ends without a full stop."""
    dangers: tuple[Danger, ...] = ()
    literal: bool = True
    """Whether every word is known before the line runs. If the program is not known, no rule's pattern can match the
    part."""
    program: str | None = None
    """The name of the program; None if it is not certain."""
    starts_others: bool = False
    """Whether the program of this part may run other programs on its own, as git does. Such a part is safe only in the
    sandbox."""
    possible: tuple[Danger, ...] = ()
    """The dangers that this part may have although its words do not show them, because a word is composed only when the
    line runs, or haft does not understand it. A rule that rejects one of these dangers rejects the part."""


def not_understood_part(text: str, reason: str) -> Part:
    """The one part that stands for a whole command line that haft could not parse. It may have any danger."""
    return Part("syntax", text, (), False, reason, ("not-understood",), literal=False, possible=tuple(DANGERS))


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of a whole command line."""

    parts: tuple[Part, ...]
    understood: bool
    """Whether the whole line was parsed. If not, there is only one part, of kind `syntax`, whose reason says why."""

    @property
    def safe(self) -> bool:
        """Whether every part only reads."""
        return bool(self.parts) and all(part.safe for part in self.parts)


@dataclass(frozen=True, slots=True)
class AnalysisContext:
    """The place where a command line would run: its workspace, directory and sandbox."""

    workspace: str
    """The absolute path of the workspace, with links resolved."""
    cwd: str = "."
    """The directory in which the line starts, relative to the workspace."""
    confined: bool = True
    """Whether a read-only sandbox will confine the commands that need no approval. Without a sandbox, programs that
    start others need approval, and so do programs that show facts about the whole machine."""
    home: str = "/nonexistent"
    """The person's home directory. Writes to dot files in it are the danger `home-dotfile`."""
