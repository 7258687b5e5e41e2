"""Runs code that is not haft's: tools, their preprocessing, approvers. Such code cannot block a run. If it ignores
cancellation, it is abandoned and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from haft.pipeline.cancellation_guard import CancellationGuard

T = TypeVar("T")

GRACE_SECONDS = 2.5
"""How long the code has to end after its cancellation: enough for TERM, a second, and KILL."""


class UntrustedCalls:
    """Guards the untrusted code of one host."""

    def __init__(self) -> None:
        self._abandoned: set[asyncio.Task[None]] = set()

    @property
    def abandoned(self) -> int:
        """How many calls ignored their cancellation and still run."""
        return len(self._abandoned)

    def guard(
        self, coroutine: Coroutine[Any, Any, T], on_cancel: Callable[[], None] = lambda: None
    ) -> CancellationGuard[T]:
        """Return an awaitable that ends with the coroutine, or a grace period after its cancellation."""
        return CancellationGuard(coroutine, GRACE_SECONDS, on_cancel, self._abandon)

    def _abandon(self, rest: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(rest)
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
