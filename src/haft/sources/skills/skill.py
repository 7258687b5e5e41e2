"""One skill on disk: its name, its folder and its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from haft.contracts import CallError
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.sources.skills.skill_files import SkillFiles

SKILL_FILE: Final = "SKILL.md"
TOOL_FOLDERS: Final = ("tools", "toolbox")
SERVERS_FILE: Final = "mcp.json"
REFERENCES: Final = "references"
LARGEST_TEXT: Final = 1_000_000
"""The most bytes of a text that an agent reads."""

_MOST_LISTED: Final = 200
_MOST_LOOKED_AT: Final = 5_000
_DEEPEST: Final = 4
_SNIFFED: Final = 1024
_NO_REFERENCES: Final = frozenset({SKILL_FILE, SERVERS_FILE, *TOOL_FOLDERS})

SkillProvenance = Literal["builtin", "user", "workspace"]


@dataclass(frozen=True, slots=True)
class Skill:
    """A folder with a SKILL.md."""

    name: str
    """The name in the front matter; the folder's name if the front matter has no valid name."""
    description: str
    folder: str
    """The absolute path of the skill's folder."""
    provenance: SkillProvenance
    problem: str | None = None
    """Why the skill cannot be used, and what to do. A skill with a problem is listed but never active."""
    shadowed_by: str | None = None
    """The folder of an earlier skill with the same name, which is used instead of this one; None if there is none."""
    within: tuple[str, str] | None = None
    """For a skill of the workspace: the workspace, and the path from there to the folder. None for other skills."""

    @property
    def is_usable(self) -> bool:
        return self.problem is None and self.shadowed_by is None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "folder": self.folder,
            "provenance": self.provenance,
            "problem": self.problem,
            "shadowedBy": self.shadowed_by,
        }

    @property
    def tool_folders(self) -> tuple[str, ...]:
        """The absolute paths of the folders with the skill's own tools. A link that leads out of the skill does not
        count."""
        found: dict[str, str] = {}
        root = real_path(self.folder)
        for name in TOOL_FOLDERS if root else ():
            path = os.path.join(self.folder, name)
            real = real_path(path)
            if os.path.isdir(real) and lies_in(real, root) and real != root:
                found.setdefault(real, path)
        return tuple(found.values())

    def files(self) -> SkillFiles:
        """The files of this skill, for reading."""
        from haft.sources.skills.skill_files import SkillFiles

        return SkillFiles(self.folder, self.within)

    def tool_files(self) -> list[str]:
        """The paths of the files that may be tools, relative to the skill's folder."""
        found = []
        files = self.files()
        for folder in map(os.path.basename, self.tool_folders):
            with suppress(OSError, CallError), files.directory(folder) as opened, os.scandir(opened) as entries:
                names = sorted(entry.name for entry in islice(entries, _MOST_LOOKED_AT) if _may_be_tool(entry))
                paths = [f"{folder}/{name}" for name in names]
                found += [path for path in paths if self.within is None or files.is_reachable(path)]
        return found[:_MOST_LISTED]

    def references(self) -> list[str]:
        """The paths of the skill's text files except SKILL.md, relative to the skill's folder: at most 200, and the
        files in `references/` first."""
        found = sorted(_texts(self.files()), key=lambda path: (not path.startswith(f"{REFERENCES}/"), path))
        return found[:_MOST_LISTED]


def real_path(path: str) -> str:
    """A path with its links resolved; empty if that fails, for example because the path changes meanwhile."""
    try:
        return os.path.realpath(path)
    except OSError:
        return ""


def lies_in(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies beneath it. Both are real paths."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _may_be_tool(entry: os.DirEntry[str]) -> bool:
    from haft.sources.amp_toolbox.discover import is_data

    return not entry.name.startswith(".") and not is_data(entry.name) and entry.is_file()


def _texts(files: SkillFiles) -> Iterator[str]:
    """The paths of the text files in a skill's folder, with the files in `references/` first. Skips links, hidden
    files, SKILL.md, mcp.json and tools. Reads only a limited number of directory entries."""
    left = _MOST_LOOKED_AT
    pending = [("", 0), (REFERENCES, 1)]
    while pending and left > 0:
        inside, depth = pending.pop()
        with (
            suppress(OSError, CallError),
            files.directory(inside or os.curdir) as opened,
            os.scandir(opened) as entries,
        ):
            found = sorted(islice(entries, left), key=lambda entry: entry.name)
            left -= len(found)
            for entry in found:
                path = f"{inside}/{entry.name}" if inside else entry.name
                if entry.name.startswith(".") or path in _NO_REFERENCES:
                    continue
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _DEEPEST and path != REFERENCES:
                            pending.append((path, depth + 1))
                    elif entry.is_file(follow_symlinks=False) and _is_text(entry.name, opened):
                        yield path


def _is_text(name: str, directory: int) -> bool:
    """Whether a file begins like text and is not too long."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_TEXT:
            return False
        return b"\0" not in os.read(descriptor, _SNIFFED)
    finally:
        os.close(descriptor)
