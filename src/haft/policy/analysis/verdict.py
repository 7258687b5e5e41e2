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
"""The classes of danger, and what each does, in words. A command of such a class needs approval even if a rule allows
it, unless the rule names the class."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a line would do: a simple command, a redirection, or syntax that haft does not analyse."""

    kind: PartKind
    text: str
    """Its text in the line."""
    words: tuple[str, ...]
    """Of a command: its assignments, program and arguments, without quotes; of a redirection: its operator and target.
    A word with an expansion appears here as it was written."""
    safe: bool
    """Whether it only reads, inside the workspace, and starts nothing that was not analysed."""
    reason: str
    """Why it is safe, or why not: a sentence without a capital letter and a full stop."""
    dangers: tuple[Danger, ...] = ()
    literal: bool = True
    """Whether every word is known before it runs. If the program itself is not known, no pattern can match it."""
    program: str | None = None
    """The name of the program; None if it is not certain."""
    starts_others: bool = False
    """Whether its program can run other programs on its own, as git does: it is safe only in the sandbox."""
    possible: tuple[Danger, ...] = ()
    """The dangers that it may have although its words do not show them, because a word is composed when it runs, or is
    not understood. A rule that rejects one of these dangers rejects the part."""


def not_understood_part(text: str, reason: str) -> Part:
    """The part for a line about which nothing is known."""
    return Part("syntax", text, (), False, reason, ("not-understood",), literal=False, possible=tuple(DANGERS))


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of a whole line."""

    parts: tuple[Part, ...]
    understood: bool
    """Whether all of it was parsed. If not, there is one part, of kind `syntax`, that says why."""

    @property
    def safe(self) -> bool:
        """Whether every part only reads."""
        return bool(self.parts) and all(part.safe for part in self.parts)


@dataclass(frozen=True, slots=True)
class AnalysisContext:
    """Where the line would run."""

    workspace: str
    """An absolute path, with links resolved."""
    cwd: str = "."
    """Relative to the workspace."""
    confined: bool = True
    """Whether a read-only sandbox will confine the commands that need no approval. Without one, programs that start
    others need approval, and so do programs that show facts about the whole machine: only lines whose words name
    nothing but files of the workspace are safe."""
    home: str = "/nonexistent"
    """The person's home directory: writes to its dot files are named as such."""
