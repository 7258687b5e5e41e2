"""Awaits a tool's coroutine so that a tool that ignores cancellation cannot block its run.

A separate task for every tool would cost three more iterations of the event loop per call. So the coroutine runs in the
run's own task, step by step, as `await` would run it. If a tool still runs when the grace period after its cancellation
is over, the tool is abandoned: the coroutine continues in a task of its own, and the run ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CancellationGuard(Generic[T]):
    """An awaitable that runs a coroutine. It can be awaited once. After a cancellation it always raises, even if the
    coroutine returns a value. A cancellation that the coroutine itself made and has dealt with, such as that of a
    timeout, does not count."""

    __slots__ = ("_abandon", "_coroutine", "_grace", "_grace_is_over", "_on_cancel", "_timer")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        grace: float,
        on_cancel: Callable[[], None],
        abandon: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._coroutine = coroutine
        self._grace = grace
        self._grace_is_over = False
        self._timer: asyncio.TimerHandle | None = None
        self._on_cancel = on_cancel
        self._abandon = abandon

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine = self._coroutine
        cancelled: asyncio.CancelledError | None = None
        error: BaseException | None = None
        value: Any = None
        try:
            while True:
                try:
                    waited = coroutine.send(value) if error is None else coroutine.throw(error)
                except StopIteration as stop:
                    if cancelled is not None and _is_cancelled():
                        raise cancelled from None
                    answer: T = stop.value
                    return answer
                value = error = None
                try:
                    value = yield waited
                except asyncio.CancelledError as again:
                    if self._grace_is_over:
                        self._abandon(_finish(coroutine, again))
                        raise
                    if cancelled is None or self._timer is None:
                        self._begin_grace()
                    error = cancelled = again
                except BaseException as other:
                    error = other
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _begin_grace(self) -> None:
        self._on_cancel()
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def over() -> None:
            self._timer = None
            if task.cancelling():  # Otherwise the coroutine itself had cancelled something, such as a timeout.
                self._grace_is_over = True
                task.cancel()

        self._timer = loop.call_later(self._grace, over)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _Remainder(Generic[T]):
    """An awaitable that runs the remaining steps of a coroutine. First it raises an exception inside the coroutine."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], error: BaseException) -> None:
        self._coroutine = coroutine
        self._error = error

    def __await__(self) -> Generator[Any, Any, T]:
        waited = self._first()
        if waited is None:
            return None  # type: ignore[return-value]  # it ended at once, and nobody uses its result
        while True:
            try:
                value = yield waited
            except BaseException as error:
                waited = self._coroutine.throw(error)
            else:
                waited = self._coroutine.send(value)

    def _first(self) -> Any:
        try:
            return self._coroutine.throw(self._error)
        except StopIteration:
            return None


async def _finish(coroutine: Coroutine[Any, Any, Any], error: BaseException) -> None:
    """Run an abandoned coroutine to its end, and ignore its result."""
    try:
        await _Remainder(coroutine, error)
    except (Exception, asyncio.CancelledError):
        return
