"""The facts known while a line is read from left to right: its possible directories, and variables that it set itself.

For both, haft stores all possible values, and a command is safe only if it is safe with each of them. If the directory
is unknown, `directories` is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from haft.lazy import regex
from haft.values import dataclass, field, replace

_MAX_DIRECTORIES: Final = 8
_HARMLESS_LOWERCASE: Final = regex(r"[a-z][a-z0-9]{0,20}(?:_[a-z0-9]{1,20}){0,5}")
_HARMLESS_UPPERCASE: Final = frozenset(
    ("COUNT", "DIR", "FILE", "FILES", "LINE", "LINES_FOUND", "PATTERN", "RESULT", "TOTAL")
)
_AFFECTS_PROGRAMS: Final = regex(r"(?:npm|pip|git|node|bash|uv|yarn)_.*|.*_proxy|histchars|auto_resume")
_SETTABLE_FOR_ONE_COMMAND: Final = frozenset(
    ("LC_ALL", "LANG", "TZ", "NO_COLOR", "COLUMNS", "LC_CTYPE", "LC_COLLATE", "FORCE_COLOR")
)
_INTEGER: Final = regex(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_VALUE: Final = regex(r"[A-Za-z0-9_.@+-]*")


@dataclass(frozen=True, slots=True)
class Values:
    """All possible values of a variable."""

    items: tuple[str, ...]
    from_files: bool = False
    """Whether some values are names of files, so that the values may change before the line runs."""
    may_be_option: bool = False
    is_number: bool = False
    """Whether the value is an unknown whole number; then there are no `items`."""
    is_pattern_free: bool = False
    """Whether the value is unknown text without a pattern of file names; then there are no `items`."""


@dataclass(slots=True)
class Scope:
    """The known facts at one point of the line. Each subshell has its own scope."""

    directories: frozenset[str] | None
    """The directories in which the next command may run; None if haft cannot tell."""
    directories_if_failed: frozenset[str] = frozenset()
    """The directories in which the shell is still if an earlier `cd` failed."""
    variables: dict[str, Values] = field(default_factory=dict)
    followed_no_link: bool = True
    """Whether no `cd` went through a link. After a `cd` through a link, `cd ..` goes to the directory that contains the
    link, not to the parent of its target."""
    reads_names: bool = False
    """Whether a loop reads file names from its input, one by one. Another command that read the same input would leave
    only parts of names for the loop."""

    has_input: bool = False
    """Whether commands in this scope may read from a pipe or a file, because that is the input of the statement around
    them."""
    is_loop_with_input: bool = False
    """Whether the commands are in a loop that has a pipe or a file as its input. Such a loop usually reads one line at
    a time."""

    pattern_variables: frozenset[str] = frozenset()
    """Variables with unknown values that may contain a pattern of file names."""

    def copy(self) -> Scope:
        """A copy for a subshell, whose changes do not affect this scope."""
        return replace(self, variables=dict(self.variables))

    def widen(self, others: frozenset[str] | None = frozenset()) -> None:
        """Add possible directories: the directories where the shell still is if an earlier `cd` failed, and
        `others`."""
        if self.directories is None or others is None:
            self.directories = None
        else:
            self.directories = self.directories | self.directories_if_failed | others
            if len(self.directories) > _MAX_DIRECTORIES:
                self.directories = None
        self.directories_if_failed = frozenset()

    def move(self, directories: frozenset[str], *, is_certain: bool) -> None:
        """Record a change to one of `directories`. Unless `is_certain`, the change may fail."""
        if not is_certain:
            self.directories_if_failed = self.directories_if_failed | (self.directories or frozenset())
        self.directories = directories

    def forget(self, names: Iterable[str] | None = None) -> None:
        """Forget the values of the variables `names`, or of all variables if `names` is None."""
        for name in list(self.variables) if names is None else names:
            self.variables.pop(name, None)


def is_numeric(values: Values) -> bool:
    """Whether every possible value is a whole number."""
    return values.is_number or (bool(values.items) and all(map(_INTEGER.fullmatch, values.items)))


def is_harmless_name(name: str) -> bool:
    """Whether a variable of this name affects no program that haft treats as safe."""
    return name in _HARMLESS_UPPERCASE or (
        _HARMLESS_LOWERCASE.fullmatch(name) is not None and _AFFECTS_PROGRAMS.fullmatch(name) is None
    )


def is_harmless_before(name: str, value: str | None) -> bool:
    """Whether a variable may be set to this value for one command."""
    return name in _SETTABLE_FOR_ONE_COMMAND and value is not None and _VALUE.fullmatch(value) is not None
