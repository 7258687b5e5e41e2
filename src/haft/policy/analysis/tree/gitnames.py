"""Reads the index of a repository, which has the names of all files that the repository tracks. `git ls-files` prints
these names.

Only the simplest kind of repository is read: its own directory is `.git`, its files are beside `.git`, and its index is
complete. Names in commits are not considered, because they may be anything.
"""

from __future__ import annotations

import os
import struct
from typing import Final

from haft.policy.analysis.tree.path_resolver import PathResolver

_MAX_NAMES: Final = 4_000
_MAX_BYTES: Final = 1_000_000
_FIXED: Final = 62
_UNUSUAL: Final = (b"worktree", b"include", b"objectformat", b"recurse", b"sparse", b"splitindex", b"bare = true")
_SUBMODULE: Final = 0o160000


def tracked_names(directory: str, resolver: PathResolver) -> tuple[str, ...] | None:
    """The names in the index, relative to the top of the repository. Each name below `directory` is in the result a
    second time, relative to `directory`. None if haft cannot tell."""
    found = _repository(directory, resolver)
    if found is None:
        return None
    top, prefix = found
    settings, index = _read(f"{top}/.git/config"), _read(f"{top}/.git/index")
    if settings is None or index is None or any(word in settings.lower() for word in _UNUSUAL):
        return None
    names = _names(index)
    if names is None:
        return None
    return (*names, *(name.removeprefix(prefix) for name in names if prefix and name.startswith(prefix)))


def _repository(directory: str, resolver: PathResolver) -> tuple[str, str] | None:
    """The top of the repository that contains `directory`, and the path from the top to `directory`. This path ends
    with `/`, or is empty. None if the repository is not of the simplest kind."""
    top = directory
    while resolver.is_inside(top):
        own = f"{top}/.git"
        if os.path.lexists(own):
            is_plain = os.path.isdir(own) and not any(
                os.path.islink(f"{own}/{each}") for each in ("", "config", "index")
            )
            is_plain = is_plain and not os.path.islink(own) and not os.path.lexists(f"{own}/commondir")
            prefix = directory[len(top) + 1 :]
            return (top, prefix + "/" if prefix else "") if is_plain else None
        if os.path.lexists(f"{top}/HEAD"):
            return None
        top = top.rpartition("/")[0]
    return None


def _read(path: str) -> bytes | None:
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    return content if len(content) <= _MAX_BYTES else None


def _names(index: bytes) -> list[str] | None:
    if len(index) < 32 or index[:4] != b"DIRC":
        return None
    version, count = struct.unpack(">II", index[4:12])
    if version not in (2, 3) or count > _MAX_NAMES:
        return None
    at, names = 12, list[str]()
    for _ in range(count):
        start = at
        if len(index) < at + _FIXED:
            return None
        mode, flags = struct.unpack(">I", index[at + 24 : at + 28])[0], struct.unpack(">H", index[at + 60 : at + 62])[0]
        at += _FIXED + (2 if flags & 0x4000 else 0)
        end = index.find(b"\x00", at)
        if end < 0 or mode & 0o170000 == _SUBMODULE:
            return None
        names.append(index[at:end].decode("utf-8", "surrogateescape"))
        at = start + (end - start + 8) // 8 * 8
    return names if _is_whole(index, at) else None


def _is_whole(index: bytes, at: int) -> bool:
    """Whether the index is complete: no part of it is in another file, and no entry stands for a whole directory."""
    while at + 8 <= len(index) - 20:
        if index[at : at + 4] in (b"link", b"sdir"):
            return False
        at += 8 + int(struct.unpack(">I", index[at + 4 : at + 8])[0])
    return at == len(index) - 20
