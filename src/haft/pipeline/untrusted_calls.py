"""Code that is not ours: tools, their preprocessing, approvers. It cannot hold a run, and is counted when let go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from haft.pipeline.cancellation_guard import CancellationGuard

T = TypeVar("T")

GRACE_SECONDS = 2.5
"""What it has to end after cancellation: enough for TERM, a second, and KILL."""


class UntrustedCalls:
    """All foreign code of one host."""

    def __init__(self) -> None:
        self._abandoned: set[asyncio.Task[None]] = set()

    @property
    def abandoned(self) -> int:
        """How much of it ignored its cancellation and is still at work."""
        return len(self._abandoned)

    def held(
        self, coroutine: Coroutine[Any, Any, T], on_cancel: Callable[[], None] = lambda: None
    ) -> CancellationGuard[T]:
        """To be awaited: ends with the coroutine, or a grace after it was cancelled."""
        return CancellationGuard(coroutine, GRACE_SECONDS, on_cancel, self._abandon)

    def _abandon(self, rest: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(rest)
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
