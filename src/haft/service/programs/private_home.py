"""The private copy of an agent's files for one run. The agent sees the copy in place of its real home directory, which
has nothing else in it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence

from haft.contracts import Mount
from haft.service.programs.program import AgentFiles
from haft.values import dataclass

State = tuple[int, int, int, int]
"""Inode, size, time of the last write, time of the last change: they differ if a file was written or replaced."""


@dataclass(frozen=True, slots=True)
class CopiedPlace:
    """One file or directory of the agent, and its copy."""

    original: str
    """The absolute path of the original."""
    name: str
    """Its usual path below the home directory."""
    copy: str


class PrivateHome:
    """The copies of one agent's files, and the state that they had before the agent started."""

    def __init__(self, directory: str, home: str, agent: AgentFiles) -> None:
        """`directory` is a new directory for the copies; `home` is the person's home directory."""
        self.agent = agent
        self.home = os.path.realpath(home)
        self.directory = directory
        self._root = os.path.join(directory, "home")
        self.places: list[CopiedPlace] = []
        self._before: dict[str, State] = {}
        self._originals: dict[str, tuple[int, int]] = {}
        self._kept = os.path.join(directory, "before")

    def make(self) -> Sequence[Mount]:
        """Copy the agent's files. Returns the mounts through which the agent sees the copies."""
        os.mkdir(self._root, 0o700)
        os.mkdir(self._kept, 0o700)
        mounts = [Mount(self._root, self.home)]
        for number, (path, name) in enumerate(self.agent.places):
            real = os.path.realpath(path)
            inside = path.startswith(f"{self.home}/")
            below = os.path.relpath(path, self.home) if inside else os.path.basename(path)
            copy = os.path.join(self._root if inside else os.path.join(self.directory, str(number)), below)
            os.makedirs(os.path.dirname(copy), mode=0o700, exist_ok=True)
            if os.path.isdir(real):
                shutil.copytree(real, copy, ignore=_special_files, ignore_dangling_symlinks=True, dirs_exist_ok=True)
            elif os.path.isfile(real):
                shutil.copy2(real, copy)
            elif not os.path.splitext(name)[1]:
                os.makedirs(copy, mode=0o700, exist_ok=True)  # A missing directory, which the agent may fill.
            if not inside and os.path.isdir(copy) and os.path.isdir(path):
                mounts.append(Mount(copy, real))
            self.places.append(CopiedPlace(path, name, copy))
        for place, below, path in self.files():
            self._before[path] = _state(path)
            with contextlib.suppress(OSError):
                found = os.stat(original_of(place, below))
                self._originals[path] = found.st_size, found.st_mtime_ns
            if self.usual_name(place, below) in self.agent.deciding_keys:
                shutil.copy2(path, self._kept_path(place, below))
        return mounts

    def files(self) -> Iterator[tuple[CopiedPlace, str, str]]:
        """All copied files: the place, the path below the place (empty for a file), and the path of the copy. No link
        is followed, because the agent can make links to files that it may not read. Links themselves are among the
        files; sockets, fifos and devices are not."""
        for place in self.places:
            if not self._is_reached_without_links(place):
                continue
            if _is_file_or_link(place.copy):
                yield place, "", place.copy
                continue
            for directory, directories, names in os.walk(place.copy):
                for name in (*names, *directories):
                    path = os.path.join(directory, name)
                    if _is_file_or_link(path):
                        yield place, os.path.relpath(path, place.copy), path

    def changed(self) -> Iterator[tuple[CopiedPlace, str, str]]:
        """The copied files that the agent wrote, made, replaced or deleted."""
        seen = set()
        for place, below, path in self.files():
            seen.add(path)
            if _state(path) != self._before.get(path):
                yield place, below, path
        for place in self.places:
            if not self._is_reached_without_links(place) or not os.path.lexists(place.copy):
                continue  # The agent moved the whole place away. Its originals stay as they are.
            for path in self._before:
                is_gone = path not in seen and not os.path.lexists(path)
                if is_gone and (path == place.copy or path.startswith(f"{place.copy}/")):
                    yield place, "" if path == place.copy else os.path.relpath(path, place.copy), path

    def _is_reached_without_links(self, place: CopiedPlace) -> bool:
        """Whether the directories above a copy, and the copy itself if it was a directory, are no links."""
        path = place.copy if os.path.isdir(place.copy) else os.path.dirname(place.copy)
        while path != self.directory:
            if os.path.islink(path):
                return False
            path = os.path.dirname(path)
        return True

    @staticmethod
    def usual_name(place: CopiedPlace, below: str) -> str:
        """The usual path of a file below the home directory."""
        return f"{place.name}/{below}" if below else place.name

    def is_original_unchanged(self, place: CopiedPlace, below: str, path: str) -> bool:
        """Whether the original is as it was when it was copied."""
        try:
            found = os.stat(original_of(place, below))
        except OSError:
            return path not in self._originals
        return self._originals.get(path) == (found.st_size, found.st_mtime_ns)

    def size_before(self, path: str) -> int:
        """The size that a copied file had before the agent started; 0 if it was not there."""
        return self._before[path][1] if path in self._before else 0

    def content_before(self, place: CopiedPlace, below: str) -> bytes | None:
        """The content of a file in `deciding_keys` before the agent started; None if it was not there."""
        with contextlib.suppress(FileNotFoundError), open(self._kept_path(place, below), "rb") as file:
            return file.read()
        return None

    def _kept_path(self, place: CopiedPlace, below: str) -> str:
        return os.path.join(self._kept, self.usual_name(place, below).replace("/", "%"))


def original_of(place: CopiedPlace, below: str) -> str:
    """The path of the original of a copied file."""
    return os.path.join(place.original, below) if below else place.original


def _is_file_or_link(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _state(path: str) -> State:
    found = os.lstat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _special_files(directory: str, names: list[str]) -> list[str]:
    """The names that cannot be copied: sockets, fifos and devices."""
    found = []
    for name in names:
        with contextlib.suppress(OSError):
            mode = os.stat(os.path.join(directory, name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                found.append(name)
    return found
