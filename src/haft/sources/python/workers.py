"""Threads for functions that block, so that the event loop never does.

`invoke` runs every synchronous tool here. There is one thread for each call in progress, kept for a while when idle;
how many calls run at once is the pipeline's business. A thread cannot be stopped: when its call is cancelled it is
abandoned, counted, and its late result dropped. All are daemons, so that none keeps the interpreter from ending;
`concurrent.futures` joins its threads at exit and costs twice as much for each hand-over.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from haft.contracts import StartFailed

if TYPE_CHECKING:
    import asyncio
    from queue import SimpleQueue

IDLE_SECONDS: Final = 30.0

Value = TypeVar("Value")

# Lists and sets change in one step in CPython, so these need no lock; where two steps could interleave, the order
# of the steps is chosen so that either way ends right, and a comment says so.
_idle: list[_Worker] = []
_abandoned: set[_Job] = set()
_watches_forks = False


def abandoned() -> int:
    """How many functions still run although nobody waits for them any more."""
    return len(_abandoned)


async def run_in_thread(function: Callable[..., Value], /, *args: Any) -> Value:
    """Call a function in a thread of its own, with a copy of this task's context variables."""
    import asyncio

    job = _Job(asyncio.get_running_loop(), function, args)
    _worker().jobs.put(job)
    try:
        value, error = await job.future
    except BaseException:
        # Added before looking: the thread marks itself finished before it discards, so one of the two removes it.
        _abandoned.add(job)
        if job.finished:
            _abandoned.discard(job)
        raise
    if error is None:
        return value  # type: ignore[no-any-return]  # the future carries a pair, one half of it
    try:
        raise error
    finally:
        del error, job  # the traceback would hold the frame that holds the error


class _Job:
    """One function on its way through a thread and back."""

    __slots__ = ("args", "context", "finished", "function", "future", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.loop = loop
        self.future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        self.function = function
        self.args = args
        self.context = contextvars.copy_context()
        self.finished = False

    def run(self, worker: _Worker) -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = self.context.run(self.function, *self.args)
        except BaseException as raised:
            error = raised
        self.finished = True
        _abandoned.discard(self)
        # Idle before the result is out: the next call may come with the very next step of the loop.
        _idle.append(worker)
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self.loop.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if not self.future.done():
            # A pair and not an exception: a future refuses StopIteration and logs what nobody fetched.
            self.future.set_result((value, error))


class _Worker:
    """One thread and the queue it is fed by."""

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        from queue import SimpleQueue
        from threading import Thread

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
                    continue  # someone has just taken this worker: the job is on its way
                return
            job.run(self)
            del job  # what it held must not live until the next one


def _worker() -> _Worker:
    global _watches_forks
    try:
        return _idle.pop()
    except IndexError:
        pass
    if not _watches_forks:
        _watches_forks = True
        # Threads do not survive a fork: the child must not hand work to those it believes idle.
        os.register_at_fork(after_in_child=_forget)
    return _Worker()


def _forget() -> None:
    _idle.clear()
    _abandoned.clear()
