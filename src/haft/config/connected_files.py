"""The files into which `haft connect` has written: agents obey them, so no call may change them without a person.

HAFT_HOME/connections/files    one path a line, links resolved

Most of these files have names that are protected everywhere. This list is for the others: a file that a link or a
variable of the environment leads to.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

_NAME: Final = "connections/files"


def note_connected(home: str | os.PathLike[str], paths: Iterable[str]) -> None:
    """Keep the list of files. A path with a line end in it is left out."""
    place = os.path.join(os.fspath(home), _NAME)
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    real = sorted({os.path.realpath(path) for path in paths if "\n" not in path})
    temporary = f"{place}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(f"{path}\n" for path in real))
    os.replace(temporary, place)


def connected_paths(home: str | os.PathLike[str]) -> list[str]:
    """The files in the list."""
    place = os.path.join(os.fspath(home), _NAME)
    with contextlib.suppress(FileNotFoundError), open(place, encoding="utf-8", errors="surrogateescape") as file:
        return [line.rstrip("\n") for line in file]
    return []


def connected_inside(home: str | os.PathLike[str], workspace: str) -> list[str]:
    """The files in a workspace that are in the list, relative to the workspace."""
    inside = os.path.realpath(workspace).rstrip("/") + "/"
    return [path[len(inside) :] for path in connected_paths(home) if path.startswith(inside)]
