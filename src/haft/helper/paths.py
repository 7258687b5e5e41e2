"""Opens paths without following links: a call could have put a link anywhere in a path."""

from __future__ import annotations

import errno
import os
import stat


class Replaced(OSError):
    """The file at a path was replaced after the call was resolved."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESTALE, "it was replaced after the call was resolved", path)


def check_same(path: str, which: list[int]) -> None:
    """Raise `Replaced` if the file at the path is gone, or its identity (device and inode) is not `which`."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise Replaced(path) from None
    if [found.st_dev, found.st_ino] != which:
        raise Replaced(path)


def open_without_links(root: int, name: str) -> int | None:
    """A descriptor of a file or directory below `root`; None if it does not exist or a link is in the path."""
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


def open_path_without_links(path: str) -> int | None:
    """A descriptor of the file or directory at an absolute path; None if it does not exist or a link is in the path."""
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        words = path.strip("/")
        return open_without_links(top, words) if words else os.dup(top)
    finally:
        os.close(top)


def identity(descriptor: int) -> list[int]:
    """The device and inode of an open file."""
    found = os.fstat(descriptor)
    return [found.st_dev, found.st_ino]
