"""What a directory contains: each path with its kind, mode and content. Reads everything, because the workspace of a
scenario is small, and because the comparison must not depend on what haft says about changes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from haft.values import dataclass

_MOST_BYTES: Final = 20_000
"""The text of a larger file is not kept."""
FoundKind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One path of a directory."""

    kind: FoundKind
    mode: int
    digest: str = ""
    """The digest of a file's content."""
    target: str | None = None
    """The target of a link."""
    text: str | None = None
    """The content of a small text file."""


def snapshot(root: str) -> dict[str, FoundFile]:
    """All paths below a directory, relative to it."""
    return dict(_found(root, ""))


def _found(root: str, inside: str) -> Iterator[tuple[str, FoundFile]]:
    try:
        entries = sorted(os.scandir(os.path.join(root, inside)), key=lambda each: each.name)
    except PermissionError:
        return  # A directory that the tester may not read has nothing that a scenario could compare.
    for entry in entries:
        path = os.path.join(inside, entry.name)
        status = entry.stat(follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            yield path, FoundFile("link", mode, target=os.readlink(entry.path))
        elif stat.S_ISDIR(status.st_mode):
            yield path, FoundFile("directory", mode)
            yield from _found(root, path)
        elif stat.S_ISREG(status.st_mode):
            yield path, FoundFile("file", mode, *_content(entry.path, status.st_size))
        else:
            yield path, FoundFile("other", mode)


def _content(path: str, size: int) -> tuple[str, str | None, str | None]:
    """The digest of a file, no target, and its text."""
    try:
        file = open(path, "rb")  # noqa: SIM115  closed below
    except PermissionError:
        return "unreadable", None, None
    with file:
        if size > _MOST_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest(), None, None
        data = file.read()
    try:
        text = None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        text = None
    return hashlib.sha256(data).hexdigest(), None, text


def differences(before: Mapping[str, FoundFile], after: Mapping[str, FoundFile]) -> dict[str, str]:
    """Each path that differs, with what happened to it: `created`, `deleted`, `changed` or `changed its mode`."""
    found: dict[str, str] = {}
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old is None or new is None:
            found[path] = "created" if old is None else "deleted"
        elif (old.kind, old.digest, old.target) != (new.kind, new.digest, new.target):
            found[path] = "changed"
        elif old.mode != new.mode:
            found[path] = "changed its mode"
    return found


def read_file(root: str, path: str) -> bytes | None:
    """The content of a file below a directory; None if there is no such file."""
    full = os.path.join(root, path)
    try:
        if not stat.S_ISREG(os.lstat(full).st_mode):
            return None
        with open(full, "rb") as file:
            return file.read()
    except OSError:
        return None
