"""Threads for functions that block, so that the event loop never does.

`invoke` runs every synchronous tool here. There is one thread for each call in progress, kept for a while when idle;
how many calls run at once is the pipeline's business. A thread cannot be stopped: when its call is cancelled it is
abandoned, counted, and its late result dropped. All are daemons, so that none keeps the interpreter from ending;
`concurrent.futures` joins its threads at exit and costs twice as much for each hand-over.
"""

from __future__ import annotations

import _thread
import contextvars
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from haft.contracts import StartFailed

if TYPE_CHECKING:
    import asyncio
    from queue import SimpleQueue

IDLE_SECONDS: Final = 30.0
MOMENT_SECONDS: Final = 0.000_15
"""How long a quick function is waited for on the spot."""
LOOK_EVERY: Final = 64
"""How many calls of a slow function pass before it is given the chance again."""

Value = TypeVar("Value")

# Lists and sets change in one step in CPython, so these need no lock; where two steps could interleave, the order
# of the steps is chosen so that either way ends right, and a comment says so.
_idle: list[_Worker] = []
_abandoned: set[_Job] = set()
_watches_forks = False


def abandoned() -> int:
    """How many functions still run although nobody waits for them any more."""
    return len(_abandoned)


class Pace:
    """Whether a function's calls are over in a moment, learned from the last ones."""

    __slots__ = ("_until_next_look",)

    def __init__(self) -> None:
        self._until_next_look = 0

    @property
    def is_quick(self) -> bool:
        """Quick until shown otherwise; then it is looked at again now and then."""
        if self._until_next_look:
            self._until_next_look -= 1
        return not self._until_next_look

    def was_slow(self) -> None:
        self._until_next_look = LOOK_EVERY


async def run_in_thread(function: Callable[..., Value], /, *args: Any, pace: Pace | None = None) -> Value:
    """Call a function in a thread of its own, with a copy of this task's context variables.

    A function that is quick by its `pace` is waited for on the spot, for a moment no longer than the loop's own
    housekeeping: coming back through the loop would cost more than most such functions do.
    """
    import asyncio

    job = _Job(asyncio.get_running_loop(), function, args)
    _worker().jobs.put(job)
    if pace is not None and pace.is_quick:
        if job.over.acquire(timeout=MOMENT_SECONDS):
            return cast("Value", _unpacked(job))
        pace.was_slow()
    # From here on the thread sends its result through the loop. It may just have finished without: then it is here.
    job.is_awaited = True
    if job.finished:
        return cast("Value", _unpacked(job))
    try:
        await job.future
    except BaseException:
        # Added before looking: the thread marks itself finished before it discards, so one of the two removes it.
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
        del error, job  # the traceback would hold the frame that holds the error


class _Job:
    """One function on its way through a thread and back."""

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
        # Idle before the result is out: the next call may come with the very next step of the loop.
        _idle.append(worker)
        self.over.release()
        # Looked at after `finished` was set, while the other side sets it before it looks there: one of them sees.
        if self.is_awaited:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self.loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        # The result lies in the job: a future refuses StopIteration and logs exceptions that nobody fetched.
        if not self.future.done():
            self.future.set_result(None)


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
