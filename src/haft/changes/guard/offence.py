"""The guard's findings, the reader it is given, and simple questions about one changed path."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final, Literal

from haft.changes.commit.entry import UNREADABLE
from haft.changes.commit.manifest import PathChange
from haft.values import dataclass

Read = Callable[[PathChange, Literal["before", "after"]], BinaryIO | None]
"""The content of a file before or after; None if it is not available."""

A_LINK: Final = "a link there leads to files that programs on the host obey"


@dataclass(frozen=True, slots=True)
class Offence:
    """One path that keeps a change set from being committed."""

    path: str
    why: str
    """A clause in which `it` is the path."""
    grant: str | None
    """The write grant that would allow it; None if no grant does."""
    activates: bool = False
    """Whether the path itself is harmless, but makes git or another program obey an existing file."""


def is_same(entry: PathChange) -> bool:
    """Whether the content is unchanged."""
    before, after = entry.before, entry.after
    return (
        before is not None
        and after is not None
        and before.kind == after.kind
        and before.content == after.content != UNREADABLE
    )


def is_link(entry: PathChange) -> bool:
    """Whether the path is a link now."""
    return entry.after is not None and entry.after.kind == "link"


def is_gone(entry: PathChange) -> bool:
    """Whether the path was removed, or replaced by a directory."""
    return entry.after is None or entry.after.kind == "directory"


def is_directory_only(entry: PathChange) -> bool:
    """Whether the path is, and was, at most a directory."""
    return all(each is None or each.kind == "directory" for each in (entry.before, entry.after))
