"""Threads for functions that block, so that they do not block the event loop.

`invoke` runs every synchronous tool here. Each call in progress has its own thread; idle threads are kept for a while.
The pipeline limits how many calls run at once. A thread cannot be stopped: when its call is cancelled, the thread is
abandoned and counted, and its result is dropped. All threads are daemons, so that none keeps the interpreter from
ending. `concurrent.futures` is not used: it joins its threads at exit, and handing over a job costs twice as much.
"""

from __future__ import annotations

import _thread
import contextvars
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from haft.contracts import StartFailed

if TYPE_CHECKING:
    import asyncio
    from queue import SimpleQueue

IDLE_SECONDS: Final = 30.0
MOMENT_SECONDS: Final = 0.000_15
"""How many seconds the caller blocks to wait for a quick function."""
LOOK_EVERY: Final = 64
"""After this many calls of a slow function, the caller tests again whether the function is quick."""

Value = TypeVar("Value")

# In CPython, a list or set changes in one step, so these need no lock. If steps of two threads could interleave, a
# comment says why each order gives a correct result.
_idle: list[_Worker] = []
_abandoned: set[_Job] = set()
_watches_forks = False


def abandoned() -> int:
    """How many functions still run although nobody waits for their result."""
    return len(_abandoned)


class SpeedEstimate:
    """Whether a function is quick, learned from its last calls."""

    __slots__ = ("_until_next_look",)

    def __init__(self) -> None:
        self._until_next_look = 0

    @property
    def is_quick(self) -> bool:
        """Whether the function counts as quick. After a slow call, it counts as slow for a number of calls
        (`LOOK_EVERY`) and is then tested again."""
        if self._until_next_look:
            self._until_next_look -= 1
        return not self._until_next_look

    def was_slow(self) -> None:
        self._until_next_look = LOOK_EVERY


async def run_in_thread(function: Callable[..., Value], /, *args: Any, speed: SpeedEstimate | None = None) -> Value:
    """Call a function in its own thread, with a copy of this task's context variables.

    If `speed` says that the function is quick, this coroutine first waits up to `MOMENT_SECONDS` for the result without
    giving control to the event loop, because passing the result through the event loop would take longer than most
    quick functions."""
    import asyncio

    job = _Job(asyncio.get_running_loop(), function, args)
    _worker().jobs.put(job)
    if speed is not None and speed.is_quick:
        if job.over.acquire(timeout=MOMENT_SECONDS):
            return cast("Value", _unpacked(job))
        speed.was_slow()
    # From here on, the thread sends its result through the loop. If it finished just before, take the result directly.
    job.is_awaited = True
    if job.finished:
        return cast("Value", _unpacked(job))
    try:
        await job.future
    except BaseException:
        # Add first, then check: the thread sets `finished` before it discards the job, so one of the two removes it.
        _abandoned.add(job)
        if job.has_finished():
            _abandoned.discard(job)
        raise
    return cast("Value", _unpacked(job))


def _unpacked(job: _Job) -> Any:
    error = job.error
    if error is None:
        return job.value
    job.error = None
    try:
        raise error
    finally:
        del error, job  # without this, the error's traceback holds this frame, and this frame holds the error


class _Job:
    """One function call in a thread, and its result."""

    __slots__ = ("args", "context", "error", "finished", "function", "future", "is_awaited", "loop", "over", "value")

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()
        self.function = function
        self.args = args
        self.context = contextvars.copy_context()
        self.value: Any = None
        self.error: BaseException | None = None
        self.finished = False
        self.is_awaited = False
        self.over = _thread.allocate_lock()
        self.over.acquire()

    def has_finished(self) -> bool:
        return self.finished

    def run(self, worker: _Worker) -> None:
        try:
            self.value = self.context.run(self.function, *self.args)
        except BaseException as raised:
            self.error = raised
        self.finished = True
        _abandoned.discard(self)
        # Idle before the result is delivered, because the next call may come in the next step of the loop.
        _idle.append(worker)
        self.over.release()
        # This reads `is_awaited` after setting `finished`, and the caller sets `is_awaited` before reading `finished`:
        # so at least one of the two sees the other's value.
        if self.is_awaited:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self.loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        # The result is kept in the job: a future refuses StopIteration and logs exceptions that nobody fetched.
        if not self.future.done():
            self.future.set_result(None)


class _Worker:
    """One thread and its queue of jobs."""

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        from queue import SimpleQueue

        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        try:
            Thread(target=self._work, name="haft tool", daemon=True).start()
        except RuntimeError as error:
            raise StartFailed(f"no thread could be started for the tool: {error}") from error

    def _work(self) -> None:
        from queue import Empty

        while True:
            try:
                job = self.jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                try:
                    _idle.remove(self)
                except ValueError:
                    continue  # another thread has just taken this worker and will put a job into its queue
                return
            job.run(self)
            del job  # release its objects before the next job


def _worker() -> _Worker:
    global _watches_forks
    try:
        return _idle.pop()
    except IndexError:
        pass
    if not _watches_forks:
        _watches_forks = True
        # Threads do not survive a fork: the child must not use the workers listed as idle.
        os.register_at_fork(after_in_child=_forget)
    return _Worker()


def _forget() -> None:
    _idle.clear()
    _abandoned.clear()
