"""Paths walked without following links: what a call could put in the way is not followed."""

from __future__ import annotations

import errno
import os
import stat


class WrittenFile(OSError):
    """Something else lies where the call was resolved to."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESTALE, "it was replaced after the call was resolved", path)


def check_same(path: str, which: list[int]) -> None:
    """`WrittenFile` where something else lies there than was meant."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise WrittenFile(path) from None
    if [found.st_dev, found.st_ino] != which:
        raise WrittenFile(path)


def walked(root: int, name: str) -> int | None:
    """A descriptor of a file or directory below `root`; None where there is none or a link is on the way."""
    place = os.dup(root)
    for word in name.split("/"):
        try:
            below = os.open(word, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
        except (OSError, ValueError):
            return None
        finally:
            os.close(place)
        if stat.S_ISLNK(os.fstat(below).st_mode):
            os.close(below)
            return None
        place = below
    return place


def walked_from_top(path: str) -> int | None:
    """The same for an absolute path."""
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        words = path.strip("/")
        return walked(top, words) if words else os.dup(top)
    finally:
        os.close(top)


def identity(descriptor: int) -> list[int]:
    """Which file or directory it is."""
    found = os.fstat(descriptor)
    return [found.st_dev, found.st_ino]
