"""What is known while a line is read from left to right: directories it may be in, and variables it set itself.

Both are held as everything that may be, so that what is judged holds for each. None as the directories means that
nothing is known of them any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from haft.lazy import regex
from haft.values import dataclass, field, replace

_MOST_DIRECTORIES: Final = 8
_SIMPLE: Final = regex(r"[a-z][a-z0-9]{0,20}(?:_[a-z0-9]{1,20}){0,5}")
_UPPER: Final = frozenset(("COUNT", "DIR", "FILE", "FILES", "LINE", "LINES_FOUND", "PATTERN", "RESULT", "TOTAL"))
_MATTERS: Final = regex(r"(?:npm|pip|git|node|bash|uv|yarn)_.*|.*_proxy|histchars|auto_resume")
_BEFORE: Final = frozenset(("LC_ALL", "LANG", "TZ", "NO_COLOR", "COLUMNS", "LC_CTYPE", "LC_COLLATE", "FORCE_COLOR"))
_INTEGER: Final = regex(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_VALUE: Final = regex(r"[A-Za-z0-9_.@+-]*")


@dataclass(frozen=True, slots=True)
class Values:
    """All that a variable may hold."""

    items: tuple[str, ...]
    from_files: bool = False
    """Whether some are names of files, of which there may be others by the time it runs."""
    may_be_option: bool = False
    is_number: bool = False
    """Whether it is a whole number of which nothing more is known; there are no items then."""
    is_text: bool = False
    """Whether nothing is known of it but that it holds no pattern of file names; there are no items then."""


@dataclass(slots=True)
class Scope:
    """One level of the shell."""

    here: frozenset[str] | None
    """Where it may be."""
    failed: frozenset[str] = frozenset()
    """Where it may have stayed when a change of directory failed."""
    known: dict[str, Values] = field(default_factory=dict)
    is_plain: bool = True
    """Whether no link was followed by a change of directory: `cd ..` goes back by name, not by place."""
    is_fed_names: bool = False
    """Whether names are read from its input one by one: what reads from there too would leave parts of names."""

    is_fed: bool = False
    """Whether a pipe or a file may lead into what runs here, since it leads into what stands around it."""
    is_fed_loop: bool = False
    """Whether it is in a loop into which something leads: a line at a time, as a rule."""

    patterns: frozenset[str] = frozenset()
    """Variables that may hold a pattern of file names, where nothing is known of them."""

    def copy(self) -> Scope:
        """For a level below, whose changes are not seen above."""
        return replace(self, known=dict(self.known))

    def widen(self, others: frozenset[str] | None = frozenset()) -> None:
        """Go on as if what came before had failed or not, or as if others had been the case."""
        if self.here is None or others is None:
            self.here = None
        else:
            self.here = self.here | self.failed | others
            if len(self.here) > _MOST_DIRECTORIES:
                self.here = None
        self.failed = frozenset()

    def move(self, places: frozenset[str], *, is_certain: bool) -> None:
        """A change of directory, which may fail unless that is certain."""
        if not is_certain:
            self.failed = self.failed | (self.here or frozenset())
        self.here = places

    def forget(self, names: Iterable[str] | None = None) -> None:
        """Nothing is known any more of some variables, or of all."""
        for name in list(self.known) if names is None else names:
            self.known.pop(name, None)


def is_numeric(values: Values) -> bool:
    """Whether a variable holds a whole number, whichever it is."""
    return values.is_number or (bool(values.items) and all(map(_INTEGER.fullmatch, values.items)))


def is_harmless_name(name: str) -> bool:
    """Whether a variable of that name means nothing to any program that passes."""
    return name in _UPPER or (_SIMPLE.fullmatch(name) is not None and _MATTERS.fullmatch(name) is None)


def is_harmless_before(name: str, value: str | None) -> bool:
    """Whether a variable may be set for one command alone."""
    return name in _BEFORE and value is not None and _VALUE.fullmatch(value) is not None
