"""What the guard finds, what it is given to look with, and what one altered path comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final, Literal

from haft.changes.commit.entry import UNREADABLE
from haft.changes.commit.manifest import PathChange
from haft.values import dataclass

Read = Callable[[PathChange, Literal["before", "after"]], BinaryIO | None]
"""The content of a file before or after; None where it cannot be had."""

A_LINK: Final = "a link there leads to what is obeyed on the host"


@dataclass(frozen=True, slots=True)
class Offence:
    """One path that holds a change set back."""

    path: str
    why: str
    """A clause whose `it` is the path."""
    grant: str | None
    """The write grant that would let it pass; None where nothing does."""
    activates: bool = False
    """Whether it is harmless itself, and makes something count that lies there already."""


def is_same(entry: PathChange) -> bool:
    """Whether it holds what it held."""
    before, after = entry.before, entry.after
    return (
        before is not None
        and after is not None
        and before.kind == after.kind
        and before.content == after.content != UNREADABLE
    )


def is_link(entry: PathChange) -> bool:
    """Whether there is a link now."""
    return entry.after is not None and entry.after.kind == "link"


def is_gone(entry: PathChange) -> bool:
    """Taken away, or replaced by a directory."""
    return entry.after is None or entry.after.kind == "directory"


def is_directory_only(entry: PathChange) -> bool:
    """Whether nothing but a directory is or was there."""
    return all(each is None or each.kind == "directory" for each in (entry.before, entry.after))
