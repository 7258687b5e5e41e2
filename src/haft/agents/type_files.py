"""Finds the Markdown files that define types, in the folders of the workspace and of the user, and reads them.

A file that lies in the workspace counts only if a person trusts exactly these bytes. It must not be a link out of the
workspace: its text goes to a model. A folder is listed without reading its files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal

from haft.agents.front_matter import MOST_BYTES
from haft.contracts import CallError
from haft.files import Root, lies_inside
from haft.values import dataclass

WORKSPACE_PLACE: Final = ".agents/agents"
USER_PLACE: Final = ".config/agents/agents"
CLAUDE_CODE_PLACE: Final = ".claude/agents"
ENDING: Final = ".md"
_MOST_SCANNED: Final = 10_000
_MOST_FILES: Final = 1_000


@dataclass(frozen=True, slots=True)
class TypeFile:
    """A file that was read once, so that the bytes that a person trusts are the bytes that count."""

    path: str
    inside: str | None
    """The path from the workspace to the file; None if the file is the user's own."""
    data: bytes
    problem: str | None = None
    """Why the file cannot be read; None if it was read."""

    @property
    def provenance(self) -> Literal["workspace", "user"]:
        return "user" if self.inside is None else "workspace"

    @property
    def stem(self) -> str:
        """The name of the file without `.md`."""
        return os.path.basename(self.path).removesuffix(ENDING)


def file_paths(place: str) -> list[str]:
    """The paths of the files in a folder that may define types. Reads none of them."""
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST_SCANNED) if _may_define(entry.name))
    except OSError:
        return []
    return [os.path.join(place, name) for name in names[:_MOST_FILES]]


def files_in(place: str, workspace: str) -> Iterator[TypeFile]:
    """Read the files in a folder that may define types."""
    for path in file_paths(place):
        yield read_file(path, workspace)


def read_file(path: str, workspace: str) -> TypeFile:
    """Read one file."""
    root = os.path.realpath(workspace)
    if not lies_inside(path, root):
        return _read(path, None, os.path.dirname(os.path.realpath(path)), os.path.realpath(path))
    written = os.path.abspath(path)
    start = next((each for each in (os.path.abspath(workspace), root) if _lies_below(written, each)), None)
    inside = os.path.relpath(os.path.realpath(path), root) if start is None else os.path.relpath(written, start)
    return _read(path, inside, root, inside)


def _read(path: str, inside: str | None, root: str, name: str) -> TypeFile:
    try:
        with Root(root).open(name) as file:
            return TypeFile(path, inside, file.read(MOST_BYTES + 1))
    except CallError as error:
        return TypeFile(path, inside, b"", f"it cannot be read: {error.message}")
    except OSError as error:
        return TypeFile(path, inside, b"", f"it cannot be read: {(error.strerror or str(error)).lower()}")


def _may_define(name: str) -> bool:
    return name.endswith(ENDING) and not name.startswith(".")


def _lies_below(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
