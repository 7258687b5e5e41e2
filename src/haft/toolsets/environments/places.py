"""Finds out where the environment of a folder lies, from which requirements it was made, and whether it is valid. Makes
no environments."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from haft.contracts import Environment
from haft.files import shown, steps_of
from haft.sources.agent_studio import name_of_folder, slug_of

ENVIRONMENT: Final = ".venv"
STAMP: Final = ".requirements_hash.txt"
MADE_BY_US: Final = ".haft"
"""The file in an environment that contains the same word as its stamp."""
FORMAT: Final = "1"
"""The version of how environments are made. Environments of another version are made again."""
_SMALL: Final = 1_000
_WORD: Final = re.compile(r"[0-9a-f]{16}")
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of an environment and its stamp, which need not exist."""

    folder: str
    records: str | None = None
    """The directory where haft records which environments it made, because a cloned repository can contain an
    environment with a stamp, which haft must not trust. None for environments in the state home: only haft makes
    those."""

    @property
    def environment(self) -> str:
        return os.path.join(self.folder, ENVIRONMENT)

    @property
    def stamp(self) -> str:
        return os.path.join(self.folder, STAMP)

    @property
    def python(self) -> str:
        return os.path.join(self.environment, "bin", "python")

    def has_other(self) -> bool:
        """Whether there is an environment here that haft did not make. haft neither uses nor replaces it. A directory
        without `pyvenv.cfg` does not count."""
        if self.records is None or not os.path.lexists(os.path.join(self.environment, "pyvenv.cfg")):
            return False
        return not self._kept(_small_file(os.path.join(self.environment, MADE_BY_US)))

    def note(self, word: str, *, is_whole: bool) -> None:
        """Record that haft made the environment with this `word`. Called twice: before the environment is moved to its
        place, and with `is_whole` afterwards, when `content_mark` can be recorded."""
        if self.records is not None:
            os.makedirs(self.records, mode=0o700, exist_ok=True)
            written = os.path.join(self.records, f"{word}.new")
            with open(written, "w", encoding="ascii") as file:
                file.write(content_mark(self.environment) if is_whole else "unfinished")
            os.replace(written, os.path.join(self.records, word))

    def _kept(self, word: str) -> str:
        """The recorded `content_mark` of the environment with this word; empty if haft did not make it. `word` comes
        from a file that anyone may have written, so its form is checked."""
        if self.records is None or not _WORD.fullmatch(word):
            return ""
        return _small_file(os.path.join(self.records, word))

    def found(self, digest: str, python: str) -> Environment | None:
        """The environment, if it was made for this `digest` and uses this interpreter; else None."""
        said = _small_file(self.stamp).split()
        if len(said) != 2 or said[0] != digest or _small_file(os.path.join(self.environment, MADE_BY_US)) != said[1]:
            return None
        if self.records is not None and self._kept(said[1]) != content_mark(self.environment):
            return None
        try:
            # Anyone who can write in the folder could make these links to any path, and calls may read what they lead
            # to.
            if os.readlink(self.python) != python or not stat.S_ISDIR(os.lstat(self.environment).st_mode):
                return None
        except OSError:
            return None
        steps = (os.path.dirname(step) for step in steps_of(python))
        readable = tuple(dict.fromkeys((self.environment, sys.base_prefix, *steps)))
        return Environment(self.python, readable, f"{digest}-{said[1]}")


def content_mark(environment: str) -> str:
    """A value that changes when a package or a `.pth` file is added or removed. Ignores the content of files."""
    found = hashlib.sha256()
    library = os.path.join(environment, "lib")
    try:
        for name in sorted(os.listdir(library)):
            about = os.stat(os.path.join(library, name, "site-packages"), follow_symlinks=False)
            found.update(f"{name} {about.st_ino} {about.st_mtime_ns} {about.st_ctime_ns} {about.st_mode}\0".encode())
    except OSError:
        return "none"
    return found.hexdigest()[:32]


def inside(state_home: str, real: str) -> Place:
    """The `Place` of an environment that lies in its own folder `real`, not in the state home."""
    return Place(real, os.path.join(state_home, "environments", "made"))


def digest_of(requirements: bytes) -> str:
    """The digest of everything that an environment depends on: the requirements, the interpreter, the machine and
    `FORMAT`."""
    facts = (
        FORMAT,
        sys.implementation.cache_tag,
        sys.abiflags,
        sys.platform,
        os.uname().machine,
        base_python(),
        content_digest(requirements),
    )
    return hashlib.sha256("\0".join(map(str, facts)).encode("utf-8", "surrogateescape")).hexdigest()


def content_digest(requirements: bytes) -> str:
    """The digest of the requirements alone. It binds the approval of a build to the requirements that the person
    saw."""
    return hashlib.sha256(requirements).hexdigest()


def allowed_builds(state_home: str, requirements: str) -> str:
    """The path of the file that exists if a person approved the build of the requirements with this digest."""
    return os.path.join(state_home, "environments", "builds", requirements)


def base_python() -> str:
    """The interpreter that environments use: the base of the environment in which haft itself runs."""
    found: str = getattr(sys, "_base_executable", None) or sys.executable
    return os.path.abspath(found)


def apart(state_home: str, real: str) -> Place:
    """The place of an environment that lies in the state home, because haft may not write in the folder."""
    shared = os.path.realpath(os.path.join(state_home, "environments"))  # A link is not there in the sandbox.
    return Place(os.path.join(shared, key_of(real)))


def key_of(real: str) -> str:
    """A short name for a folder, used in the names of files."""
    return hashlib.sha256(os.fsencode(real)).hexdigest()[:24]


def name_of(real: str) -> str:
    """The name of a template's tool, as in the list of tools."""
    return shown(slug_of(name_of_folder(real)))


def _small_file(path: str) -> str:
    """The content of a small file; empty if there is no file, or if it is not a regular file or not small."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _SMALL).decode("ascii", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
