"""Runs code that is not haft's: tools, their preprocessing, approvers. Such code cannot block a run. If it ignores
cancellation, it is abandoned and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from haft.pipeline.cancellation_guard import CancellationGuard

T = TypeVar("T")

GRACE_SECONDS = 2.5
"""How many seconds the code has to end after its cancellation. That is enough to send TERM to a process, wait a second,
and send KILL."""


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
        """An awaitable that ends when the coroutine ends; after a cancellation, it ends after the grace period at the
        latest. `on_cancel` is called at a cancellation."""
        return CancellationGuard(coroutine, GRACE_SECONDS, on_cancel, self._abandon)

    def _abandon(self, rest: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(rest)
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
