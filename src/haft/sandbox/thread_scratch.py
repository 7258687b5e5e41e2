"""The `/tmp` that each thread keeps between its calls: a directory in the state home, mounted as `/tmp` in its sandbox.

    STATE/scratch/NAME/tmp    what calls of the thread see as `/tmp`; tools decide what lies there
    STATE/scratch/NAME/lock   held by the call that uses it, and last touched when it was used last

NAME stands for the workspace and the thread. How much it may hold is watched by the helper while calls run. Here it is
made, held for one call at a time, and removed: when it is too full, when nobody has used it for a day, or with the host
whose thread it was, where nobody named that.
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
MOST_LINES: Final = 400
_MISSING: Final = regex(r"no such file|\bENOENT\b|cannot find|not found", re.IGNORECASE)
_IN_TMP: Final = regex(r"(?<![\w.~/-])/tmp/+([\w+@%=-][\w.+@%=-]*)")
_GONE: Final = ".gone-"
_SWEPT: Final = ".swept"


@dataclass(frozen=True, slots=True)
class Removed:
    """So many threads' directories, and the bytes of the disk they took."""

    threads: int = 0
    bytes: int = 0


class ThreadScratch:
    """Those of one workspace."""

    def __init__(self, state_home: str, workspace: str) -> None:
        self.root = scratch_root(state_home)
        self._workspace = workspace

    def prepared(self) -> str:
        """The root, made where it is missing."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        return self.root

    def name_of(self, thread: str) -> str:
        return hashlib.sha256(json.dumps([self._workspace, thread]).encode()).hexdigest()[:32]

    def missed(self, thread: str, said: str) -> str | None:
        """A path that a program did not find, by its own words, and that is in the `/tmp` of its thread."""
        inside = os.path.join(self.root, self.name_of(thread), "tmp")
        there = (name for name in not_found(said) if os.path.lexists(os.path.join(inside, name)))
        return next((f"/tmp/{name}" for name in there), None)  # noqa: S108  as the program calls it

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[bool]:
        """Make it where it is missing, and have it alone: two calls that share a directory can pass on what one of them
        was granted. False where another call has it. An empty one is not kept."""
        try:
            lock = self._taken(name)
        except OSError as error:
            hint = '`sandbox.scratch = "call"` does without'
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
        with contextlib.suppress(OSError):  # Something is in it.
            place = os.path.join(self.root, name)
            if _is_at(lock, place):
                os.rmdir(os.path.join(place, "tmp"))
                os.unlink(os.path.join(place, "lock"))
                os.rmdir(place)

    def empty(self, name: str) -> None:
        """The next call begins with an empty one. For the call that has it."""
        gone = os.path.join(self.root, f"{_GONE}{os.urandom(8).hex()}")
        with contextlib.suppress(OSError):  # What cannot be removed now is removed with what is idle.
            os.rename(os.path.join(self.root, name), gone)
            remove(gone)

    def forget(self, thread: str) -> None:
        """Remove that of a thread which ends with its host."""
        _remove(self.root, os.path.join(self.root, self.name_of(thread)))

    def is_sweep_due(self) -> bool:
        """Whether nobody has looked for idle ones for a while."""
        try:
            return os.stat(os.path.join(self.root, _SWEPT)).st_mtime < time.time() - SWEEP_SECONDS
        except OSError:
            return os.path.isdir(self.root)


def not_found(said: str) -> Iterator[str]:
    """The names in `/tmp` that a program did not find, by its own words."""
    for line in said.splitlines()[-MOST_LINES:]:
        named = _IN_TMP.search(line) if _MISSING.search(line) else None
        if named is not None:
            yield named[1]


def scratch_root(state_home: str) -> str:
    """Where those of all workspaces lie."""
    return os.path.join(os.path.realpath(state_home), "scratch")


def sweep(root: str) -> None:
    """Remove what is idle, and remember that it was looked for."""
    with contextlib.suppress(OSError):
        os.close(os.open(os.path.join(root, _SWEPT), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(os.path.join(root, _SWEPT))
        remove_scratch(root, time.time() - IDLE_SECONDS)


def scratch_in(root: str, before: float | None = None) -> Removed:
    """What threads keep; with a time, what nobody has used since."""
    found = [place for place in _places(root) if before is None or _last_used(place) < before]
    return Removed(len(found), sum(measured(place)[1] for place in found))


def remove_scratch(root: str, before: float) -> Removed:
    """Remove what nobody has used since a time, or was emptied, unless a call uses it right now."""
    threads = size = 0
    for place in _places(root):
        if os.path.basename(place).startswith(_GONE) or _last_used(place) < before:
            taken = _remove(root, place)
            if taken is not None:
                threads, size = threads + 1, size + taken
    return Removed(threads, size)


def _remove(root: str, place: str) -> int | None:
    """Remove one, unless a call uses it; the bytes it took."""
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
    """Whether the lock is still that of the directory: it may have been removed, or emptied, in between."""
    try:
        return os.path.samestat(os.lstat(os.path.join(place, "lock")), os.fstat(lock))
    except FileNotFoundError:
        return False


def _make(path: str) -> None:
    """As `/tmp` is, whatever a call made of it."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    place = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o1777)  # noqa: S103  nobody else gets as far as here
    finally:
        os.close(place)
