"""The guard's findings, the function by which it reads files, and simple questions about one changed path."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final, Literal

from haft.changes.commit.entry import UNREADABLE
from haft.changes.commit.manifest import PathChange
from haft.values import dataclass

Read = Callable[[PathChange, Literal["before", "after"]], BinaryIO | None]
"""Opens the content of a file before or after the change; None if the content is not available."""

A_LINK: Final = "a link there leads to files that programs on the host obey"


@dataclass(frozen=True, slots=True)
class Offence:
    """One path whose change needs approval. Without approval, haft does not commit the change set."""

    path: str
    why: str
    """The reason, as a clause for a message. If the clause says `it`, it means the path."""
    grant: str | None
    """The path of the write grant that would allow the change; None if no grant can."""
    activates: bool = False
    """Whether the path itself is harmless, but makes git use an existing file that decides what git runs."""


def is_same(entry: PathChange) -> bool:
    """Whether the path has the same kind and content before and after. False if the content could not be read."""
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
    """Whether the path, both before and after the change, is a directory or does not exist."""
    return all(each is None or each.kind == "directory" for each in (entry.before, entry.after))
