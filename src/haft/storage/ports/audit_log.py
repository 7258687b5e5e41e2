"""The port of the audit log: bytes that only grow, a head beside them, and a key.

`audit/` writes lines into it, chains and seals them, and says in the head how far they go. The port keeps bytes in
order and lets writers take turns; it knows neither lines nor hashes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class AuditLog(Protocol):
    """The log of a state home. Only `begin` makes anything; without it, the log can be read. Any thread may use it."""

    def exists(self) -> bool:
        """Whether a writer ever began. The log is there before its head and its key."""
        ...

    def begin(self) -> None:
        """Make what is missing, and be ready to write."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """Alone among all who take a turn, in all processes. A writer whose lease was lost gets none."""
        ...

    def size(self) -> int:
        """Where the next byte goes."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, fewer where the log ends before."""
        ...

    def append(self, data: bytes) -> None:
        """Add bytes, all or, as far as can be helped, none. Safe against the death of this process when it returns."""
        ...

    def head(self) -> bytes:
        """The head as it was last set; empty where it never was."""
        ...

    def set_head(self, data: bytes) -> None:
        """Replace the head by less than 512 bytes, which are read whole or not at all."""
        ...

    def checkpoint(self) -> bytes:
        """How far the log was found intact, as it was last set. A log that keeps none is checked as a whole."""
        return b""

    def set_checkpoint(self, data: bytes) -> None:
        """Replace the checkpoint, as a whole. Where that cannot be done, the one before stays."""

    def key(self) -> bytes | None: ...

    def set_key(self, key: bytes) -> None:
        """Keep the key, which is never changed again."""
        ...

    def sync(self) -> None:
        """Log and head survive power loss from here on."""
        ...

    def close(self) -> None: ...
