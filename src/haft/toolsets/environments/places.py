"""Where the environment of a folder lies, what it was made of, and whether it counts. Nothing is made here."""

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
"""In an environment: the word of its making."""
FORMAT: Final = "1"
"""Changes with how environments are made: those of another are made anew."""
_SMALL: Final = 1_000
_WORD: Final = re.compile(r"[0-9a-f]{16}")
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an environment and its stamp lie, or would."""

    folder: str
    records: str | None = None
    """Where it is kept which ones we made; None in the state home, where nobody else makes any. A clone can bring an
    environment with a stamp of its own: it is not believed."""

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
        """Whether someone else made an environment here: it is neither used nor replaced. One without `pyvenv.cfg` is
        none."""
        if self.records is None or not os.path.lexists(os.path.join(self.environment, "pyvenv.cfg")):
            return False
        return not self._kept(_small_file(os.path.join(self.environment, MADE_BY_US)))

    def note(self, word: str, *, is_whole: bool) -> None:
        """Keep that we made one: before it is put in its place, and what is in it when it is there."""
        if self.records is not None:
            os.makedirs(self.records, mode=0o700, exist_ok=True)
            written = os.path.join(self.records, f"{word}.new")
            with open(written, "w", encoding="ascii") as file:
                file.write(content_mark(self.environment) if is_whole else "unfinished")
            os.replace(written, os.path.join(self.records, word))

    def _kept(self, word: str) -> str:
        """What was kept of one; nothing where it is not ours. The word may be anyone's."""
        if self.records is None or not _WORD.fullmatch(word):
            return ""
        return _small_file(os.path.join(self.records, word))

    def found(self, digest: str, python: str) -> Environment | None:
        """The environment, where it was made of what `digest` stands for and leads to this interpreter."""
        said = _small_file(self.stamp).split()
        if len(said) != 2 or said[0] != digest or _small_file(os.path.join(self.environment, MADE_BY_US)) != said[1]:
            return None
        if self.records is not None and self._kept(said[1]) != content_mark(self.environment):
            return None
        try:
            # Who can write here could have it lead anywhere, and what it leads to is shown to calls.
            if os.readlink(self.python) != python or not stat.S_ISDIR(os.lstat(self.environment).st_mode):
                return None
        except OSError:
            return None
        steps = (os.path.dirname(step) for step in steps_of(python))
        readable = tuple(dict.fromkeys((self.environment, sys.base_prefix, *steps)))
        return Environment(self.python, readable, f"{digest}-{said[1]}")


def content_mark(environment: str) -> str:
    """Changes when a package or a `.pth` comes or goes: what is in a file is not looked at."""
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
    """In the folder itself."""
    return Place(real, os.path.join(state_home, "environments", "made"))


def digest_of(requirements: bytes) -> str:
    """Stands for everything that an environment depends on."""
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
    """What a question about building, its answer and the building are bound to."""
    return hashlib.sha256(requirements).hexdigest()


def allowed_builds(state_home: str, requirements: str) -> str:
    """What is there where someone allowed that the requirements with this digest are built."""
    return os.path.join(state_home, "environments", "builds", requirements)


def base_python() -> str:
    """The interpreter that environments lead to: the one below any environment that haft itself runs in."""
    found: str = getattr(sys, "_base_executable", None) or sys.executable
    return os.path.abspath(found)


def apart(state_home: str, real: str) -> Place:
    """Where the environment of a folder lies that is not ours to write in."""
    return Place(os.path.join(state_home, "environments", key_of(real)))


def key_of(real: str) -> str:
    """What stands for a folder in names of files."""
    return hashlib.sha256(os.fsencode(real)).hexdigest()[:24]


def name_of(real: str) -> str:
    """What the tool of a template is called, as in the list of tools."""
    return shown(slug_of(name_of_folder(real)))


def _small_file(path: str) -> str:
    """What a file of a few words says; nothing where there is none, or it is something else."""
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
