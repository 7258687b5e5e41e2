"""The digest of installed files: equal if the same packages are installed again, wherever and whenever that is."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Final

from haft.lazy import regex

_NOT_CONTENT: Final = regex(
    r"(?:.*/)?(?:__pycache__(?:/.*)?|[^/]*\.dist-info/(?:RECORD|INSTALLER|REQUESTED|direct_url\.json|uv_\w+\.json)"
    r"|\.?package-lock\.json|bun\.lockb?)"
    r"|bin/(?:activate[^/]*|deactivate[^/]*|pydoc[^/]*|python[^/]*)|pyvenv\.cfg|CACHEDIR\.TAG|\.lock|\.gitignore|lib64"
)
"""Paths that name the place or the time of the installation, or that Python makes from other files."""
_CHUNK: Final = 1 << 20


def tree_digest(folder: str) -> str:
    """The digest of all files in a folder, with their names and whether they are executable. Links are not
    followed."""
    found = hashlib.sha256()
    for parent, directories, files in os.walk(folder):
        directories.sort()
        links = [name for name in directories if os.path.islink(os.path.join(parent, name))]
        for name in sorted((*files, *links)):
            path = os.path.join(parent, name)
            inside = os.path.relpath(path, folder)
            if not _NOT_CONTENT.fullmatch(inside):
                found.update(f"{inside}\0{_content(path)}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _content(path: str) -> str:
    about = os.lstat(path)
    if stat.S_ISLNK(about.st_mode):
        return f"link {os.readlink(path)}"
    if not stat.S_ISREG(about.st_mode):
        return "other"
    content = hashlib.sha256()
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        while chunk := file.read(_CHUNK):
            content.update(chunk)
    return f"{bool(about.st_mode & 0o100)} {content.hexdigest()}"
