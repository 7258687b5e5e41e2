"""Where installed servers are kept, and which of them is current.

Each command has a directory `servers/KEY` in the state home. It holds one directory for each installed version, and
the file `current.json`, which names the version in use. A version becomes current when this file is replaced, so a
process that is killed at any point leaves either the old or the new version. Versions that are no longer current are
removed a day later: a server that another host started may still read its files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from haft.files import HeldLock, sync_filesystem, try_lock
from haft.lazy import late_module
from haft.toolsets.providers.packages.command_line import PackageCommand
from haft.values import dataclass

if TYPE_CHECKING:
    import shutil
else:
    shutil = late_module("shutil")

FORMAT: Final = 1
"""The version of how servers are installed. Those of another version are installed again."""
FOLDER: Final = "servers"
RECORD: Final = "current.json"
UNFINISHED: Final = "new-"
LOCK: Final = ".lock"
KEPT_SECONDS: Final = 86_400.0
"""How long a version stays after another one became current."""
UNUSED_SECONDS: Final = 90 * 86_400.0
"""How long a server stays that nobody starts."""
_MOST_BYTES: Final = 1_000_000

Interpreter = Literal["node", "bun", "python", "none"]


@dataclass(frozen=True, slots=True)
class Record:
    """What is known about an installed version."""

    folder: str
    """The name of the directory of this version."""
    program: str
    """The path of the program, relative to that directory."""
    interpreter: Interpreter
    version: str
    digest: str
    without_scripts: tuple[str, ...] = ()
    """The packages whose install scripts were not run."""


class ServerPlace:
    """The directory of one command's installed versions."""

    def __init__(self, state_home: str, command: PackageCommand, python: str | None) -> None:
        facts = (FORMAT, command.registry, command.packages, command.program, command.uses_bun, python)
        key = hashlib.sha256(repr(facts).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._servers = os.path.join(state_home, FOLDER)
        self.folder = os.path.join(self._servers, key)

    def path_of(self, record: Record) -> str:
        """The directory of an installed version."""
        return os.path.join(self.folder, record.folder)

    def current(self) -> Record | None:
        """The version in use; None if there is none."""
        record = _read(os.path.join(self.folder, RECORD))
        if record is None or not os.path.isfile(os.path.join(self.path_of(record), record.program)):
            return None
        return record

    def note_use(self) -> None:
        """Note that the server is still used, at most once a day."""
        path = os.path.join(self.folder, RECORD)
        with contextlib.suppress(OSError):
            if time.time() - os.stat(path).st_mtime > KEPT_SECONDS:
                os.utime(path)

    def lock(self) -> HeldLock | None:
        """The lock of this directory; None if another process is installing here."""
        os.makedirs(self._servers, mode=0o700, exist_ok=True)
        return try_lock(self.folder + LOCK)

    def put(self, made: str, record: Record) -> None:
        """Move an installed version here, and make it the current one. The caller holds the lock."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        before = _read(os.path.join(self.folder, RECORD))
        unfinished = os.path.join(self.folder, UNFINISHED + record.folder)
        try:
            _move(made, unfinished)
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                sync_filesystem(descriptor)  # Without this, a power failure could leave a record and empty files.
            finally:
                os.close(descriptor)
            os.rename(unfinished, self.path_of(record))
            _write(os.path.join(self.folder, RECORD), record)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        if before is not None:
            with contextlib.suppress(OSError):
                os.utime(self.path_of(before))  # Its last day begins.

    def tidy(self) -> None:
        """Remove what killed processes left, and versions and servers that are no longer used, of all commands. The
        caller holds the lock of this directory."""
        for name in _names(self._servers):
            folder = os.path.join(self._servers, name)
            if folder == self.folder:
                _tidy(folder)
            elif not name.endswith(LOCK) and (lock := try_lock(folder + LOCK)) is not None:
                try:
                    _tidy(folder)
                finally:
                    lock.release(unlink=True)


def _tidy(folder: str) -> None:
    record = _read(os.path.join(folder, RECORD))
    if record is not None and _age(os.path.join(folder, RECORD)) > UNUSED_SECONDS:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for name in _names(folder):
        path = os.path.join(folder, name)
        is_old = name.startswith(UNFINISHED) or _age(path) > KEPT_SECONDS
        if is_old and os.path.isdir(path) and (record is None or name != record.folder):
            shutil.rmtree(path, ignore_errors=True)
    if record is None:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _names(folder: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        yield from os.listdir(folder)


def _age(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _move(made: str, place: str) -> None:
    try:
        os.rename(made, place)
    except OSError:  # Mostly because it was made on another filesystem.
        shutil.copytree(made, place, symlinks=True)


def _write(path: str, record: Record) -> None:
    fields: dict[str, Any] = {
        "format": FORMAT,
        "folder": record.folder,
        "program": record.program,
        "interpreter": record.interpreter,
        "version": record.version,
        "digest": record.digest,
        "without_scripts": list(record.without_scripts),
    }
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(fields, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def _read(path: str) -> Record | None:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.loads(file.read(_MOST_BYTES))
        if found["format"] != FORMAT:
            return None
        return Record(
            found["folder"],
            found["program"],
            found["interpreter"],
            found["version"],
            found["digest"],
            tuple(found["without_scripts"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
