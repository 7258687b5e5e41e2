"""The log of an MCP server: its stderr, and the lines of its stdout that are no messages. It is kept in the state home,
and bounded.

haft also remembers the last part, and at which bytes calls began. If a call fails, the log of that time may say why."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

from haft.contracts import NO_SECRETS, RunId, Secrets, error_or_last_line
from haft.sources.mcp.texts import visible
from haft.values import dataclass

MOST_BYTES: Final = 500_000
"""A log that grows beyond this size becomes the old log, which replaces the old log before it."""
TAIL_BYTES: Final = 16_000
REMEMBERED_BYTES: Final = 64_000
"""The most bytes of the log that can explain a failed call. One traceback can have a third of this."""


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


@dataclass(slots=True)
class _OpenCall:
    began: int
    """How many bytes the log had when the call began."""
    is_shared: bool
    """Whether the server may have worked on another call at the same time."""


class ServerLog:
    """Writes the log of one server. Errors of the disk are ignored: a log is not worth a call."""

    def __init__(self, path: str, secrets: Secrets = NO_SECRETS) -> None:
        self._path = path
        self._mask = secrets.stream()
        self._recent = b""
        self._bytes = 0
        self._calls: dict[RunId, _OpenCall] = {}
        self._abandoned = False
        """Whether the process may still work on a call that was cancelled."""
        self._file: int | None = None
        self._size = 0

    def started(self, command: str) -> None:
        """Begin the log of a new process."""
        self._recent = b""
        self._abandoned = False
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        self._write(f"--- {stamp} started: {command}\n".encode("utf-8", "replace"))

    def add(self, data: bytes) -> None:
        self._add(self._mask.feed(data))

    def _add(self, data: bytes) -> None:
        self._recent = (self._recent + data)[-REMEMBERED_BYTES:]
        self._bytes += len(data)
        self._write(data)

    def ended(self) -> None:
        """Write what is left, and close the file."""
        if rest := self._mask.end():
            self._add(rest)
        self._close()

    def begin_call(self, run: RunId) -> None:
        """The server gets a call."""
        for other in self._calls.values():
            other.is_shared = True
        self._calls[run] = _OpenCall(self._bytes, is_shared=bool(self._calls) or self._abandoned)

    def of_call(self, run: RunId) -> tuple[str, bool]:
        """What was added since a call began, with hidden characters as escapes, and whether some of it may be about
        another call. All calls of a server share one log."""
        call = self._calls.get(run)
        if call is None:
            return "", False
        count = self._bytes - call.began
        text = self._recent[-count:].decode("utf-8", "replace") if count else ""
        return visible(text), call.is_shared

    def end_call(self, run: RunId, *, abandoned: bool = False) -> None:
        """A call ended, or the server did not get it. With `abandoned`, the server may still work on it."""
        if self._calls.pop(run, None) is not None:
            self._abandoned = self._abandoned or abandoned

    @property
    def last_line(self) -> str:
        """The line of the newest process's log that names the cause of a failure; the last line if none does."""
        return error_or_last_line(self._recent[-TAIL_BYTES:].decode("utf-8", "replace"))

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
