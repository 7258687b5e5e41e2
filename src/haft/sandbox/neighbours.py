"""The other workspaces of a server: no call may see them, whatever a person approved.

`site` covers their places for every call, and `grant_resolver` refuses to grant them. A hard link to a file of another
workspace cannot be told from a file of one's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from haft.contracts import BadConfig
from haft.sandbox.toolchains import is_below

MOUNTS: Final = "/proc/self/mountinfo"


class _Mount(NamedTuple):
    device: bytes
    root: str
    """The directory of the file system that is mounted."""
    point: str


def places_of(neighbours: Iterable[str]) -> tuple[str, ...]:
    """Every place of the file system at which a part of these directories can be reached: their real paths, and the
    other mounts of the same directories."""
    mounts = _mounts()
    found: dict[str, None] = {}
    for path in map(os.path.realpath, neighbours):
        found[path] = None
        above = [each for each in mounts if is_below(path, (each.point,))]
        if not above:
            continue
        # Of several mounts at one point, the last one is visible.
        own = max(enumerate(above), key=lambda each: (len(each[1].point), each[0]))[1]
        inside = _joined(own.root, os.path.relpath(path, own.point))
        for each in mounts:
            if each.device != own.device:
                continue
            if is_below(inside, (each.root,)):
                found[_joined(each.point, os.path.relpath(inside, each.root))] = None
            elif is_below(each.root, (inside,)):
                found[each.point] = None
    return tuple(found)


def check_apart(workspace: str, neighbours: Iterable[str]) -> None:
    """Raise `BadConfig` if one workspace lies in another: no call could be kept out of it."""
    own = os.path.realpath(workspace)
    for path in map(os.path.realpath, neighbours):
        if is_below(own, (path,)) or is_below(path, (own,)):
            raise BadConfig(
                f"the workspaces {own} and {path} lie in one another, so a call of one would see the other",
                hint="give each workspace a directory of its own",
            )


def _joined(path: str, rest: str) -> str:
    return os.path.normpath(os.path.join(path, rest))


def _mounts() -> list[_Mount]:
    try:
        with open(MOUNTS, "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    fields = (line.split(b" ") for line in lines)
    return [_Mount(each[2], _path(each[3]), _path(each[4])) for each in fields]


def _path(field: bytes) -> str:
    """A path as the kernel writes it in a list: blanks and backslashes are octal escapes."""
    return os.fsdecode(field.decode("unicode_escape").encode("latin-1"))
