"""What a directory contains: each path with its kind, mode and content. Reads everything, because the workspace of a
scenario is small, and because the comparison must not depend on what haft says about changes."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from haft.values import dataclass

_MOST_BYTES: Final = 20_000
"""The text of a larger file is not kept, and not written into scenarios."""
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
    attributes: tuple[tuple[str, bytes], ...] = ()
    """The extended attributes that belong to users."""


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
            digest, text = _content(entry.path, status.st_size)
            yield path, FoundFile("file", mode, digest, text=text, attributes=_attributes(entry.path))
        else:
            yield path, FoundFile("other", mode)


def _content(path: str, size: int) -> tuple[str, str | None]:
    """The digest of a file, and its text."""
    try:
        file = open(path, "rb")  # noqa: SIM115  closed below
    except PermissionError:
        return "unreadable", None
    with file:
        if size > _MOST_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest(), None
        data = file.read()
    try:
        text = None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        text = None
    return hashlib.sha256(data).hexdigest(), text


def _attributes(path: str) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):
        return ()
    try:
        names = [each for each in os.listxattr(path) if each.startswith("user.")]
        return tuple((each, os.getxattr(path, each)) for each in sorted(names))
    except OSError:  # The file system has none, or the tester may not read them.
        return ()


def differences(before: Mapping[str, FoundFile], after: Mapping[str, FoundFile]) -> dict[str, str]:
    """Each path that differs, with what happened to it: `created`, `deleted`, `changed`, `changed its
    mode` or `changed its extended attributes`."""
    found: dict[str, str] = {}
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old is None or new is None:
            found[path] = "created" if old is None else "deleted"
        elif (old.kind, old.digest, old.target) != (new.kind, new.digest, new.target):
            found[path] = "changed"
        elif old.mode != new.mode:
            found[path] = "changed its mode"
        elif old.attributes != new.attributes:
            found[path] = "changed its extended attributes"
    return found


def expectations(root: str, before: Mapping[str, FoundFile], after: Mapping[str, FoundFile]) -> dict[str, Any]:
    """Each path that differs, as the part `expect.files` of a scenario would have it. Directories are there
    only if they are empty or gone."""
    found: dict[str, Any] = {}
    filled_before, filled_after = ({os.path.dirname(each) for each in paths} for paths in (before, after))
    for path, what in differences(before, after).items():
        file = after.get(path)
        if file is None:
            if path not in filled_before:
                found[path] = None
        elif what == "changed its mode":
            found[path] = {"mode": f"{file.mode:o}"}
        elif file.kind == "file":
            found[path] = _binary(root, path) if file.text is None else file.text
        elif file.kind == "link":
            found[path] = {"link": file.target}
        elif path not in filled_after:
            found[path] = {"kind": file.kind}
    return found


def _binary(root: str, path: str) -> dict[str, Any]:
    """What scenarios expect of a file that is large, or no text."""
    data = read_file(root, path)
    if data is None or len(data) > _MOST_BYTES:
        return {"kind": "file"}
    return {"base64": base64.b64encode(data).decode()}


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
