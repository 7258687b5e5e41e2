"""Locks between processes, by `flock`: the kernel releases them when the process ends, however it ends.

`HeldLock` shows that a process is alive: the process holds the lock for its whole life, so a process that gets the lock
knows that the holder has ended. `locked` is for short critical sections on a file that is already open. Descriptors are
closed on exec, so no program that a tool starts keeps a lock. These locks do not work on network file systems without
`flock`.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_SHORTEST_SLEEP = 0.0002
_LONGEST_SLEEP = 0.005
_LONGEST_NOTE = 65_536

_held: weakref.WeakSet[HeldLock] = weakref.WeakSet()


def _forget_after_fork() -> None:
    for lock in list(_held):
        lock.forget()


os.register_at_fork(after_in_child=_forget_after_fork)


class HeldLock:
    """An exclusive lock on a file, held until `release` or the end of the process."""

    __slots__ = ("__weakref__", "_descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        _held.add(self)

    def forget(self) -> None:
        """In a forked child: close the copy of the descriptor, or the lock would outlive its holder. Do not unlock:
        that would release the lock of the parent too."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @classmethod
    def create(cls, path: str, note: bytes = b"") -> HeldLock:
        """Make a new lock file at `path`. No process ever sees this file unlocked or, unless the disk is full, without
        its note. No other process may use the same path."""
        temporary = f"{path}.{os.urandom(8).hex()}.tmp"
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if note:
                with suppress(OSError):
                    os.pwrite(descriptor, note, 0)
            os.rename(temporary, path)
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return cls(path, descriptor)

    @property
    def held(self) -> bool:
        return self._descriptor >= 0

    def note(self, data: bytes) -> None:
        """Write `data` into the file, in place of the previous note. Without the lock nothing is written."""
        if self.held:
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))

    def read_note(self) -> bytes:
        """The note in the file, even if an earlier holder wrote it; empty if this lock was released."""
        return os.pread(self._descriptor, _LONGEST_NOTE, 0) if self.held else b""

    def release(self, *, unlink: bool) -> None:
        """Release the lock; with `unlink`, remove the file first, while it is locked. Calling it again does nothing."""
        if not self.held:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            if unlink and _is_at(descriptor, self.path):
                with suppress(FileNotFoundError):
                    os.unlink(self.path)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # Closing is not enough if a forked child has a copy.
            os.close(descriptor)


def try_lock(path: str, *, makes: bool = True) -> HeldLock | None:
    """Take the lock at `path` if no process holds it, else return None at once. If the file is missing, make it; with
    `makes=False`, return None instead."""
    while True:
        try:
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if makes else 0)
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            if makes:
                raise
            return None
        taken = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed the file between opening and locking: then this lock has no effect.
            taken = _is_at(descriptor, path)
        except BlockingIOError:
            return None
        finally:
            if not taken:
                os.close(descriptor)
        if taken:
            return HeldLock(path, descriptor)


def noted(path: str) -> bytes | None:
    """The note of the process that holds the lock at `path`, at most 64 KiB; None if no process holds it. For a moment
    after a change, the end of an older, longer note may follow the new note.

    This never takes a lock from its holder, and never makes the file. If the lock is free, this function takes it for
    an instant, and a `try_lock` at this instant finds the lock held.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(descriptor, _LONGEST_NOTE, 0)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # Closing is not enough if a forked child has a copy.
        return None
    finally:
        os.close(descriptor)


def holder_of(path: str) -> int | None:
    """The pid of the process that holds the lock at `path`, for messages; None if the kernel does not report it."""
    try:
        found = os.stat(path, follow_symlinks=False)
        with open("/proc/locks") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    holders = (words[4] for words in lines if words[1:2] == ["FLOCK"] and words[5:6] == [place])
    return next((int(pid) for pid in holders if pid.isdigit() and pid != "0"), None)


@contextmanager
def locked(descriptor: int, timeout: float) -> Iterator[None]:
    """Hold the exclusive lock of an open file. Raises `TimeoutError` if it is not free within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    pause = _SHORTEST_SLEEP
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError(f"the lock was not free within {timeout:g} seconds") from None
        time.sleep(min(pause, remaining))
        pause = min(pause * 2, _LONGEST_SLEEP)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_at(descriptor: int, path: str) -> bool:
    """Whether `path` still names the open file."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
