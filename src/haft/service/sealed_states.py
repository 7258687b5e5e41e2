"""What the sealing of MCP's request states needs on disk: the key, and the marks of states that were used.

HAFT_HOME/request-states/key             32 random bytes    0600
HAFT_HOME/request-states/used/<nonce>    an empty file for each used state, kept until the state has expired

A client carries a request state from one of our answers to its next request (`surfaces/mcp/request_state.py`). All
processes with this state home share the key and the marks. So a state is good after a restart, and good only once.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from typing import Final

from haft.contracts import BadConfig, StorageFailed
from haft.lazy import regex
from haft.service.private_files import sync_directory, write_new

DIRECTORY: Final = "request-states"
KEY_BYTES: Final = 32
_REMOVE: Final = "remove the file: haft makes a new key, and calls that wait for an answer must be made again"
_NONCE = regex(r"[0-9a-f]{32}")
_SPARE_SECONDS: Final = 120.0
"""How much longer than the life of a state its mark is kept, because clocks can be set back."""


class SealedStates:
    """The key and the marks of one state home."""

    def __init__(self, home: str | os.PathLike[str], *, seconds: float) -> None:
        """`seconds`: how long a state is good."""
        self._directory = os.path.join(os.fspath(home), DIRECTORY)
        self._used = os.path.join(self._directory, "used")
        self._seconds = seconds
        self._pruned_at = 0.0

    def key(self) -> bytes:
        """The key of this state home, made on first use."""
        path = os.path.join(self._directory, "key")
        try:
            with contextlib.suppress(FileExistsError):
                if not os.path.exists(path):
                    write_new(self._directory, "key", secrets.token_bytes(KEY_BYTES))
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(file.fileno())
                if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.geteuid():
                    raise BadConfig(f"{path} belongs to another user, or others can read it", hint=_REMOVE)
                key = file.read(KEY_BYTES + 1)
        except OSError as error:
            raise StorageFailed("haft could not read the key of request states", error) from error
        if len(key) != KEY_BYTES:
            raise BadConfig(f"the key of request states, {path}, is damaged", hint=_REMOVE)
        return key

    def new_nonce(self) -> str:
        """A name for one state."""
        return secrets.token_hex(16)

    def use(self, nonce: str) -> bool:
        """Mark a state as used. False if it was used before: the first process that asks gets True."""
        if _NONCE.fullmatch(nonce) is None:
            return False
        if time.monotonic() > self._pruned_at + self._seconds:
            self.prune()
        try:
            os.makedirs(self._used, mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(os.path.join(self._used, nonce), flags, 0o600))
            sync_directory(self._used)
        except FileExistsError:
            return False
        except OSError as error:
            raise StorageFailed("haft could not mark a request state as used", error) from error
        return True

    def prune(self) -> None:
        """Remove the marks of states that have expired."""
        self._pruned_at = time.monotonic()
        with contextlib.suppress(OSError), os.scandir(self._used) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < time.time() - self._seconds - _SPARE_SECONDS:
                        os.unlink(entry.path)
