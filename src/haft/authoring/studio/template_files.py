"""Finds the files of a template that are packed.

Environments, caches, version control and files of the installer are left out. Links and special files are refused,
never followed: each directory is opened from the descriptor of its parent, so that nobody can replace a directory by a
link meanwhile.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from haft.authoring.archives.bounded_folder import DEEPEST, Bounds, plain_path
from haft.contracts import BadUsage
from haft.files import shown
from haft.sources.agent_studio import ENVIRONMENT, HASH_FILE, MANIFEST_FILE

BOUNDS: Final = Bounds(files=5_000, bytes=100_000_000)
"""The limits for all templates of a ZIP together."""
LEFT_OUT: Final = frozenset({ENVIRONMENT, "__pycache__", ".git", ".hg", ".svn", "__macosx", ".ds_store"})
"""Names that are never part of a template, in lower case."""
LEFT_OUT_AT_TOP: Final = frozenset({HASH_FILE, MANIFEST_FILE})
"""Names that are left out only in the template's folder itself."""
_UNFINISHED: Final = f"{ENVIRONMENT}."
"""The beginning of the name of an environment that is being built or removed."""
_OURS: Final = ".haft"
"""The beginning of the names of haft's own files in a template's folder."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DEEPEST: Final = DEEPEST - 3
"""The deepest path in a template. In a ZIP, a template's folder lies three directories deep, which count too."""
_LONGEST: Final = 700


@dataclass(frozen=True, slots=True)
class TemplateEntry:
    """A file or a directory of a template."""

    path: str
    content: bytes | None
    """The content of the file; None for a directory."""
    is_executable: bool = False


class PackBudget:
    """How many files and bytes may still be packed."""

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self._bounds = bounds
        self._files = 0
        self.bytes = bounds.bytes

    def count(self) -> None:
        self._files += 1
        if self._files > self._bounds.files:
            raise BadUsage(f"there are more than {self._bounds.files:_} files and directories: nothing is packed")

    def read(self, descriptor: int) -> bytes:
        with open(descriptor, "rb") as file:
            content = file.read(self.bytes + 1)
        self.bytes -= len(content)
        if self.bytes < 0:
            raise BadUsage(f"there are more than {self._bounds.bytes:_} bytes: nothing is packed")
        return content


def is_left_out(path: str) -> bool:
    """Whether a path in a template's folder is not part of the template."""
    top, *rest = path.lower().split("/")
    return is_litter(path) or top.startswith(_OURS) or (not rest and top in LEFT_OUT_AT_TOP)


def is_litter(path: str) -> bool:
    """Whether a path is in an environment, a cache or a version control directory."""
    return any(name in LEFT_OUT or name.startswith(_UNFINISHED) for name in path.lower().split("/"))


def template_entries(folder: str, budget: PackBudget) -> Iterator[TemplateEntry]:
    """The files and directories of a template in the order of their names, each directory before its content."""
    try:
        top = os.open(os.path.realpath(folder), _DIRECTORY)
    except OSError as error:
        raise _cannot(folder, error) from error
    try:
        yield from _inside(top, "", folder, budget)
    finally:
        os.close(top)


def _inside(descriptor: int, above: str, folder: str, budget: PackBudget) -> Iterator[TemplateEntry]:
    with os.scandir(descriptor) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        path = f"{above}/{name}" if above else name
        if is_left_out(path):
            continue
        where = os.path.join(folder, path)
        budget.count()
        if plain_path(path) != path or path.count("/") >= _DEEPEST or len(path) > _LONGEST:
            raise BadUsage(
                f"`{shown(where)}` has a name that other machines do not support: nothing is packed", hint="rename it"
            )
        try:
            mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                yield TemplateEntry(path, None)
                yield from _below(descriptor, name, path, folder, budget)
            elif stat.S_ISREG(mode):
                yield _file(descriptor, name, path, where, budget)
            else:
                raise _special(where, mode)
        except OSError as error:
            raise _cannot(where, error) from error


def _below(descriptor: int, name: str, path: str, folder: str, budget: PackBudget) -> Iterator[TemplateEntry]:
    inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
    try:
        yield from _inside(inner, path, folder, budget)
    finally:
        os.close(inner)


def _file(descriptor: int, name: str, path: str, where: str, budget: PackBudget) -> TemplateEntry:
    opened = os.open(name, _READ, dir_fd=descriptor)
    mode = os.fstat(opened).st_mode
    if not stat.S_ISREG(mode):
        os.close(opened)
        raise _special(where, mode)
    return TemplateEntry(path, budget.read(opened), bool(mode & stat.S_IXUSR))


def _special(where: str, mode: int) -> BadUsage:
    if stat.S_ISLNK(mode):
        return BadUsage(f"`{shown(where)}` is a link: nothing is packed", hint="replace the link with the file")
    return BadUsage(f"`{shown(where)}` is neither a file nor a directory: nothing is packed", hint="remove it")


def _cannot(where: str, error: OSError) -> BadUsage:
    return BadUsage(f"`{shown(where)}` cannot be read, nothing is packed: {(error.strerror or str(error)).lower()}")
