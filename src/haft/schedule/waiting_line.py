"""Counts the calls of a host that wait for their turn, wherever they wait, and refuses more than a limit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from haft.contracts import Busy


class WaitingLine:
    """How many calls wait: for calls before them in a batch, for locks, or for a place."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    @contextlib.contextmanager
    def joined(self, name: str, *, has_waited: bool = False) -> Iterator[None]:
        """A context in which one more call waits. Raises `Busy` if too many wait already, unless this call `has_waited`
        before: a call that was queued once is not refused later."""
        if self._count >= self._limit and not has_waited:
            raise Busy(
                f"`{name}` was not called: {self._count} calls wait for their turn already (`limits.max_queued` ="
                f" {self._limit})",
                hint="call it again when fewer calls wait",
            )
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
