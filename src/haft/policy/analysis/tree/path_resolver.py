"""Resolves where paths lead: inside the workspace or out of it, with every link resolved.

Paths are resolved on the disk as it is now. If a link changes between this check and the run, the sandbox still
confines the call. Hard links cannot be detected.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from haft.policy.analysis.deadline import Deadline
from haft.policy.analysis.verdict import AnalysisContext, Danger
from haft.values import dataclass, field

_MAX_LINKS: Final = 40
_MAX_LENGTH: Final = 4_096
_MAX_COMPONENTS: Final = 256
_MAX_SHARED: Final = 30
_STANDARD: Final = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"))
_SYSTEM: Final = frozenset((
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "srv", "sys",
    "usr", "var", "Library", "System", "Applications", "private",
))  # fmt: skip
_SPECIAL: Final = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_DEVICES: Final = (
    "/dev/sd", "/dev/hd", "/dev/vd", "/dev/xvd", "/dev/nvme", "/dev/mmcblk", "/dev/loop", "/dev/dm-", "/dev/md",
    "/dev/mapper/", "/dev/disk", "/dev/rdisk", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/nbd", "/dev/zram", "/dev/sr",
)  # fmt: skip


@dataclass(slots=True)
class PathResolver:
    """Resolves the paths of one command line, and remembers the results."""

    context: AnalysisContext
    deadline: Deadline = field(default_factory=Deadline)
    values_left: int = 6_000
    """How many more values of variables may be inserted into words, for the whole line."""
    _found: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def start(self) -> str | None:
        """The absolute path of the directory in which the command line starts; None if this directory is not inside the
        workspace."""
        place = self.resolve(self.context.workspace, self.context.cwd)
        return place if place is not None and self.is_inside(place) else None

    def is_inside(self, place: str) -> bool:
        """Whether an absolute path without links is the workspace or lies in it."""
        top = self.context.workspace.rstrip("/")
        return place == (top or "/") or place.startswith(top + "/")

    def leads_inside(self, directory: str, path: str) -> bool:
        """Whether a path, relative to a directory, leads into the workspace or is one of the standard streams."""
        self.deadline.check()
        if is_standard_stream(path) or not path:
            return True
        place = self.resolve(directory, path)
        return place is not None and self.is_inside(place)

    def special_kind(self, directory: str, path: str) -> str | None:
        """The kind of a path that is neither a file nor a directory, such as a FIFO; None for files and directories.

        A program that opens a FIFO waits for another program, and reads that program's output.
        """
        place = None if is_standard_stream(path) else self.resolve(directory, path)
        try:
            mode = stat.S_IFREG if place is None else os.lstat(place).st_mode
        except (OSError, ValueError):
            return None
        return next((name for is_one, name in _SPECIAL if is_one(mode)), None)

    def resolve(self, directory: str, path: str) -> str | None:
        """The absolute path without links; None if haft cannot tell. Components that do not exist are kept as
        written."""
        key = (directory, path)
        if key not in self._found:
            self.deadline.check()
            self._found[key] = self._resolve_by_parent(directory, path)
        return self._found[key]

    def _resolve_by_parent(self, directory: str, path: str) -> str | None:
        """Like `resolve`, but resolves the parent directory of `path` first. Many paths have the same parent directory,
        so the result for the parent is often cached."""
        parent, _, name = path.rpartition("/")
        if not parent or name in ("", ".", "..") or parent.count("/") > _MAX_SHARED or len(path) > _MAX_LENGTH:
            return _resolve(directory, path)
        place = self.resolve(directory, parent)
        return None if place is None else _resolve(place, name)

    def write_dangers(self, directory: str | None, path: str) -> tuple[Danger, ...]:
        """The classes of danger that a write to this path would have."""
        if is_standard_stream(path) or not path:
            return ()
        place = self.resolve(directory or self.context.workspace, path)
        if place is not None and self.is_inside(place) and (directory is not None or path.startswith("/")):
            return ()
        location = os.path.normpath(path) if place is None else place
        if location.startswith(_DEVICES) or path.startswith(_DEVICES):
            return ("raw-device", "outside-workspace")
        home = self.context.home.rstrip("/")
        if home and location.startswith(home + "/."):
            return ("home-dotfile", "outside-workspace")
        if home and (location == home or location.startswith(home + "/")):
            return ("outside-workspace",)
        if location.startswith("/") and (location == "/" or location.split("/")[1] in _SYSTEM):
            return ("system-write", "outside-workspace")
        return ("outside-workspace",)


def is_standard_stream(path: str) -> bool:
    """Whether a path is one of the process's own streams, or /dev/null."""
    return path in _STANDARD or (path.startswith("/dev/fd/") and path[8:].isdigit() and len(path) < 12)


def _resolve(directory: str, path: str) -> str | None:
    if len(path) > _MAX_LENGTH:
        return None
    left = [each for each in reversed(path.split("/")) if each]
    place = "" if path.startswith("/") else directory.rstrip("/")
    links = steps = 0
    exists = True
    while left:
        steps += 1
        if steps > _MAX_COMPONENTS:
            return None
        name = left.pop()
        if name == ".":
            continue
        if name == "..":
            place = place.rpartition("/")[0]
            continue
        here = f"{place}/{name}"
        target = _target(here) if exists else ""
        if target is None:
            return None
        if target == "missing":
            exists = False
        if not target or target == "missing":
            place = here
            continue
        links += 1
        if links > _MAX_LINKS:
            return None
        target = target[1:]
        if target.startswith("/"):
            place = ""
        left += [each for each in reversed(target.split("/")) if each]
    return place or "/"


def _target(path: str) -> str | None:
    """If `path` is a link: a colon and the target of the link. If it is any other file: an empty text. `missing` if
    there is no file; None if haft cannot tell."""
    try:
        return ":" + os.readlink(path)
    except (ValueError, UnicodeError):
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:
            return ""
        return "missing" if error.errno in (errno.ENOENT, errno.ENOTDIR) else None
