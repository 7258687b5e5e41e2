"""The port (storage interface) of the audit log: append-only bytes, a head, and a key.

The package `audit` writes lines into the log, chains and seals them, and notes in the head where they end. The port
stores bytes in order and lets only one writer write at a time; it knows neither lines nor hashes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class AuditLog(Protocol):
    """The log of a state home. Only `begin` makes files. Without a call of `begin`, an existing log can be read, but
    not written. Any thread of the process may use this object."""

    def exists(self) -> bool:
        """Whether any writer ever called `begin`. The log exists before its head and its key."""
        ...

    def begin(self) -> None:
        """Make missing files, and prepare to write."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """A context manager that holds an exclusive lock: only one thread of one process has the lock at a time. Raises
        `LeaseLost` if another process has taken over the runs of this host."""
        ...

    def size(self) -> int:
        """The size of the log in bytes."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`; fewer if the log ends before."""
        ...

    def append(self, data: bytes) -> None:
        """Append bytes. After an error, the log has none of these bytes, if that is possible. When this method returns,
        the bytes survive the death of this process."""
        ...

    def head(self) -> bytes:
        """The head that was last set; empty if it was never set."""
        ...

    def set_head(self, data: bytes) -> None:
        """Replace the head by `data`, which must be shorter than 512 bytes. Readers see the old head or the new one,
        never a mixture."""
        ...

    def checkpoint(self) -> bytes:
        """The checkpoint that was last set. It says how far the log has been verified. Empty if no checkpoint was ever
        set: the next check then covers the whole log."""
        return b""

    def set_checkpoint(self, data: bytes) -> None:
        """Replace the checkpoint as a whole. If that fails, the previous checkpoint stays."""

    def key(self) -> bytes | None: ...

    def set_key(self, key: bytes) -> None:
        """Store the key, which never changes again."""
        ...

    def sync(self) -> None:
        """Make log and head survive power loss."""
        ...

    def close(self) -> None: ...
