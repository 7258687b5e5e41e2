"""The conversations of tasks as private files: one file a task, written as a whole each time."""

from __future__ import annotations

import contextlib
import os
from typing import Final

from haft.contracts import StorageFailed

_SUFFIX: Final = ".task"
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ConversationFiles:
    """The directory with the conversations of one state home."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def read(self, task: str) -> bytes | None:
        """The conversation of a task; None if nothing is stored."""
        try:
            descriptor = os.open(self._path(task), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            return file.read()

    def write(self, task: str, text: bytes) -> None:
        """Replace the conversation of a task. If the process is killed meanwhile, the old one stays."""
        temporary = f"{self._path(task)}.{os.urandom(6).hex()}.tmp"
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            with open(os.open(temporary, _FLAGS, 0o600), "wb") as file:
                file.write(text)
                file.flush()
                os.fdatasync(file.fileno()) if hasattr(os, "fdatasync") else os.fsync(file.fileno())
            os.replace(temporary, self._path(task))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise StorageFailed(f"the conversation of {task} could not be stored", error) from error

    def remove_before(self, at: float) -> int:
        """Remove the conversations that were last written before a point in time. Returns how many."""
        removed = 0
        with contextlib.suppress(OSError), os.scandir(self._directory) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < at:
                        os.unlink(entry.path)
                        removed += 1
        return removed

    def _path(self, task: str) -> str:
        name = "".join(each for each in task if each.isalnum() or each in "_-")
        return os.path.join(self._directory, f"{name}{_SUFFIX}")
