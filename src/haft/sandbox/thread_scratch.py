"""The `/tmp` that each thread keeps between its calls: a directory in the state home, which haft mounts as the `/tmp`
of these calls.

    STATE/scratch/NAME/tmp    the `/tmp` of the thread's calls; tools decide what it contains
    STATE/scratch/NAME/lock   locked by the call that uses `tmp`; its modification time tells when a call last did so

NAME is a digest of the workspace and the thread. The helper watches the size while calls run. This module makes the
directory, locks it for one call at a time, and removes it when it is too full or when no call has used it for a day. If
the host made up the name of the thread, the directory is removed when the host process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from typing import Final

from haft.contracts import StartFailed
from haft.files import measured, remove
from haft.lazy import regex
from haft.values import dataclass

IDLE_SECONDS: Final = 86_400.0
SWEEP_SECONDS: Final = 3_600.0
MAX_LINES: Final = 400
_MISSING: Final = regex(r"no such file|\bENOENT\b|cannot find|not found", re.IGNORECASE)
_IN_TMP: Final = regex(r"(?<![\w.~/-])/tmp/+([\w+@%=-][\w.+@%=-]*)")
_GONE: Final = ".gone-"
_SWEPT: Final = ".swept"


@dataclass(frozen=True, slots=True)
class Removed:
    """The number of threads whose directories were found or removed, and the size of these directories on disk in
    bytes."""

    threads: int = 0
    bytes: int = 0


class ThreadScratch:
    """The `/tmp` directories of the threads of one workspace."""

    def __init__(self, state_home: str, workspace: str) -> None:
        self.root = scratch_root(state_home)
        self._workspace = workspace

    def prepared(self) -> str:
        """The directory with all `/tmp` directories, made if it is missing."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        return self.root

    def name_of(self, thread: str) -> str:
        return hashlib.sha256(json.dumps([self._workspace, thread]).encode()).hexdigest()[:32]

    def missed(self, thread: str, said: str) -> str | None:
        """A path in `/tmp` that the output `said` reports as missing, although it exists in the `/tmp` of the thread;
        None if there is no such path."""
        inside = os.path.join(self.root, self.name_of(thread), "tmp")
        there = (name for name in not_found(said) if os.path.lexists(os.path.join(inside, name)))
        return next((f"/tmp/{name}" for name in there), None)  # noqa: S108  as the program calls it

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[bool]:
        """Make the directory if it is missing, and lock it for one call: two calls that share a directory could pass on
        data that only one of them may reach. Yields False if another call has the lock. Removes an empty directory at
        the end."""
        try:
            lock = self._taken(name)
        except OSError as error:
            hint = 'set `sandbox.scratch = "call"` to give every call its own empty /tmp'
            raise StartFailed(f"the /tmp of its thread cannot be made: {error}", hint=hint) from error
        if lock is None:
            yield False
            return
        try:
            yield True
        finally:
            try:
                self._leave(name, lock)
            finally:
                os.close(lock)

    def _taken(self, name: str) -> int | None:
        place = os.path.join(self.root, name)
        while True:
            with contextlib.suppress(FileNotFoundError):  # It was removed a moment ago.
                os.makedirs(place, mode=0o700, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                lock = os.open(os.path.join(place, "lock"), flags, 0o600)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if _is_at(lock, place):
                        os.utime(lock)
                        _make(os.path.join(place, "tmp"))
                        return lock
                except BlockingIOError:
                    os.close(lock)
                    return None
                except BaseException:
                    os.close(lock)
                    raise
                os.close(lock)

    def _leave(self, name: str, lock: int) -> None:
        os.utime(lock)
        with contextlib.suppress(OSError):  # The directory is not empty.
            place = os.path.join(self.root, name)
            if _is_at(lock, place):
                os.rmdir(os.path.join(place, "tmp"))
                os.unlink(os.path.join(place, "lock"))
                os.rmdir(place)

    def empty(self, name: str) -> None:
        """Empty the directory for the next call. Only the call that has the lock may do this."""
        gone = os.path.join(self.root, f"{_GONE}{os.urandom(8).hex()}")
        with contextlib.suppress(OSError):  # `sweep` tries again later.
            os.rename(os.path.join(self.root, name), gone)
            remove(gone)

    def forget(self, thread: str) -> None:
        """Remove the directory of a thread that ends with its host process."""
        _remove(self.root, os.path.join(self.root, self.name_of(thread)))

    def is_sweep_due(self) -> bool:
        """Whether the last search for idle directories was long ago."""
        try:
            return os.stat(os.path.join(self.root, _SWEPT)).st_mtime < time.time() - SWEEP_SECONDS
        except OSError:
            return os.path.isdir(self.root)


def not_found(said: str) -> Iterator[str]:
    """The names in `/tmp` that the output of a program reports as missing."""
    for line in said.splitlines()[-MAX_LINES:]:
        named = _IN_TMP.search(line) if _MISSING.search(line) else None
        if named is not None:
            yield named[1]


def scratch_root(state_home: str) -> str:
    """The directory with the `/tmp` directories of all workspaces."""
    return os.path.join(os.path.realpath(state_home), "scratch")


def sweep(root: str) -> None:
    """Remove idle directories, and record the time of this search."""
    with contextlib.suppress(OSError):
        os.close(os.open(os.path.join(root, _SWEPT), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(os.path.join(root, _SWEPT))
        remove_scratch(root, time.time() - IDLE_SECONDS)


def scratch_in(root: str, before: float | None = None) -> Removed:
    """The number and size of the directories; with `before`, only of those that no call has used since the time
    `before`."""
    found = [place for place in _places(root) if before is None or _last_used(place) < before]
    return Removed(len(found), sum(measured(place)[1] for place in found))


def remove_scratch(root: str, before: float) -> Removed:
    """Remove directories that no call has used since the time `before`, and the remains of directories that `empty`
    could not remove. Directories that a call uses now stay."""
    threads = size = 0
    for place in _places(root):
        if os.path.basename(place).startswith(_GONE) or _last_used(place) < before:
            taken = _remove(root, place)
            if taken is not None:
                threads, size = threads + 1, size + taken
    return Removed(threads, size)


def _remove(root: str, place: str) -> int | None:
    """Remove one directory and return its size in bytes; None if a call uses it."""
    with contextlib.suppress(OSError):
        lock = os.open(os.path.join(place, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(lock, place):
                return None
            size = measured(place)[1]
            if not os.path.basename(place).startswith(_GONE):
                gone = os.path.join(root, f"{_GONE}{os.urandom(8).hex()}")
                os.rename(place, gone)
                place = gone
            remove(place)
            return size
        finally:
            os.close(lock)
    return None


def _places(root: str) -> list[str]:
    try:
        with os.scandir(root) as found:
            return [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _last_used(place: str) -> float:
    for path in (os.path.join(place, "lock"), place):
        with contextlib.suppress(OSError):
            return os.lstat(path).st_mtime
    return time.time()


def _is_at(lock: int, place: str) -> bool:
    """Whether `lock` is still the directory's lock file: another process may have removed or emptied the directory."""
    try:
        return os.path.samestat(os.lstat(os.path.join(place, "lock")), os.fstat(lock))
    except FileNotFoundError:
        return False


def _make(path: str) -> None:
    """Make the directory with the mode of `/tmp`, also if a call changed the mode."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    place = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o1777)  # noqa: S103  only the owner can enter the directory above
    finally:
        os.close(place)
