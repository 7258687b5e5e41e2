"""Answers of calls as small private files, and how many of them may stay.

    DIRECTORY/key             32 random bytes
    DIRECTORY/counts          how often answers were given again, and why not, as JSON
    DIRECTORY/answers/KEY     one answer; its mtime says when it was last used

All workspaces of a state home share the directory and its bounds. When there are too many answers, those that were not
used for longest go first. Each host looks at the bounds after a part of them was written, so that there may be a few
percent more for a while.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Mapping
from typing import Final

KEY_BYTES: Final = 32
LARGEST_SHARE: Final = 4
"""One answer may have this part of all bytes: a quarter."""
_PART: Final = 20
_MOST_COUNTS: Final = 30
_MOST_COUNT_BYTES: Final = 100_000
_LEFT_OVER_SECONDS: Final = 3_600.0
"""The age after which a file that a killed process left half written is removed."""


class AnswerFiles:
    """The directory, as one host uses it."""

    def __init__(self, directory: str, entries: int, size: int, seconds: float) -> None:
        """`seconds`: after this time without use, an answer is removed."""
        self._directory = directory
        self._answers = os.path.join(directory, "answers")
        self.entries = entries
        self.bytes = size
        self._seconds = seconds
        self._written = 0
        self._written_bytes = 0
        self._is_counted = False

    def secret(self) -> bytes | None:
        """The key of this state home, made on first use; None if it cannot be made, or others can read it."""
        path = os.path.join(self._directory, "key")
        try:
            os.makedirs(self._answers, mode=0o700, exist_ok=True)
            if not os.path.exists(path):
                self._make_secret(path)
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                found = os.fstat(file.fileno())
                key = file.read(KEY_BYTES + 1)
        except OSError:
            return None
        is_private = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
        return key if is_private and len(key) == KEY_BYTES else None

    def _make_secret(self, path: str) -> None:
        temporary = self._write_temporary(path, secrets.token_bytes(KEY_BYTES))
        try:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            os.unlink(temporary)

    def read(self, key: str) -> bytes | None:
        try:
            descriptor = os.open(
                os.path.join(self._answers, key), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            )
            with open(descriptor, "rb") as file:
                found = os.fstat(file.fileno())
                is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
                return file.read() if is_own and found.st_size <= self._largest else None
        except OSError:
            return None

    def touch(self, key: str) -> None:
        """Note that an answer was used."""
        with contextlib.suppress(OSError):
            os.utime(os.path.join(self._answers, key))

    def write(self, key: str, data: bytes) -> bool:
        """Store an answer. Returns whether that worked."""
        if len(data) > self._largest:
            return False
        try:
            path = os.path.join(self._answers, key)
            temporary = self._write_temporary(path, data)
            try:
                os.rename(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError:
            return False
        self._written += 1
        self._written_bytes += len(data)
        is_due = self._written * _PART > self.entries or self._written_bytes * _PART > self.bytes
        if is_due or not self._is_counted:
            self.prune()
        return True

    @property
    def _largest(self) -> int:
        return self.bytes // LARGEST_SHARE

    @staticmethod
    def _write_temporary(path: str, data: bytes) -> str:
        temporary = f"{path}.{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
        except BaseException:
            os.unlink(temporary)
            raise
        return temporary

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add to the numbers in the file `counts`, which all hosts share."""
        path = os.path.join(self._directory, "counts")
        with contextlib.suppress(OSError):
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(descriptor, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                known = _counts_in(file.read(_MOST_COUNT_BYTES))
                for name, count in counts.items():
                    known[name] = known.get(name, 0) + count
                most = dict(sorted(known.items(), key=lambda each: -each[1])[:_MOST_COUNTS])
                file.seek(0)
                file.write(json.dumps(most).encode())
                file.truncate()

    def counts(self) -> dict[str, int]:
        """The numbers that all hosts have added."""
        with contextlib.suppress(OSError), open(os.path.join(self._directory, "counts"), "rb") as file:
            return _counts_in(file.read(_MOST_COUNT_BYTES))
        return {}

    def listed(self) -> tuple[int, int]:
        """How many answers there are, and how many bytes they have."""
        found = self._found()
        return len(found), sum(size for _, size, _ in found)

    def prune(self) -> int:
        """Remove the answers that were not used for longest, as far as there are too many. Returns how many."""
        self._written = self._written_bytes = 0
        self._is_counted = True
        found = sorted(self._found(), reverse=True)
        count = size = removed = 0
        oldest = time.time() - self._seconds
        for used, each, path in found:
            count, size = count + 1, size + each
            if count > self.entries or size > self.bytes or used < oldest:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    removed += 1
        return removed

    def _found(self) -> list[tuple[float, int, str]]:
        found = []
        with contextlib.suppress(OSError), os.scandir(self._answers) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if not entry.name.endswith(".tmp"):
                        found.append((status.st_mtime, status.st_size, entry.path))
                    elif time.time() - status.st_mtime > _LEFT_OVER_SECONDS:
                        os.unlink(entry.path)
        return found


def _counts_in(data: bytes) -> dict[str, int]:
    """The numbers in the file `counts`; none if it is damaged."""
    with contextlib.suppress(ValueError, RecursionError):
        known = json.loads(data)
        if isinstance(known, dict):
            return {name: count for name, count in known.items() if isinstance(count, int)}
    return {}
