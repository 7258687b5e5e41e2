"""The log of an MCP server: its stderr, and the lines of its stdout that are no messages. It is kept in the state home,
and bounded."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

from haft.contracts import NO_SECRETS, Secrets, error_or_last_line
from haft.sources.mcp.texts import visible

MOST_BYTES: Final = 500_000
"""A log that grows beyond this size becomes the old log, which replaces the old log before it."""
TAIL_BYTES: Final = 16_000


def log_path(state_home: str, server: str) -> str:
    """The path of a server's log."""
    return os.path.join(state_home, "provider-logs", f"{server}.log")


def read_log(state_home: str, server: str) -> str:
    """Everything that is kept of a server's log, the oldest first, with hidden characters as escapes; empty if there
    is none."""
    path = log_path(state_home, server)
    return "".join(_text(each) for each in (f"{path}.old", path))


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return visible(file.read(2 * MOST_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""


class ServerLog:
    """Writes the log of one server. Errors of the disk are ignored: a log is not worth a call."""

    def __init__(self, path: str, secrets: Secrets = NO_SECRETS) -> None:
        self._path = path
        self._mask = secrets.stream()
        self._tail = b""
        self._file: int | None = None
        self._size = 0

    def started(self, command: str) -> None:
        """Begin the log of a new process."""
        self._tail = b""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        self._write(f"--- {stamp} started: {command}\n".encode("utf-8", "replace"))

    def add(self, data: bytes) -> None:
        data = self._mask.feed(data)
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        self._write(data)

    def ended(self) -> None:
        """Write what is left, and close the file."""
        if rest := self._mask.end():
            self._tail = (self._tail + rest)[-TAIL_BYTES:]
            self._write(rest)
        self._close()

    @property
    def last_line(self) -> str:
        """The line of the newest process's log that names the cause of a failure; the last line if none does."""
        return error_or_last_line(self._tail.decode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        if len(data) > MOST_BYTES:
            data = b"[cut]\n" + data[-MOST_BYTES // 2 :]
        with suppress(OSError):
            if self._file is None:
                self._open()
            elif self._size + len(data) > MOST_BYTES:
                self._close()
                os.replace(self._path, f"{self._path}.old")
                self._open()
            assert self._file is not None
            self._size += os.write(self._file, data)

    def _open(self) -> None:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._file).st_size

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
