"""Ends the processes of a test run together with the process that started them, however that one ends.

A process is told to stop by a pipe: the process that started it has the other end, which closes when it stops, or is
killed. What runs then is cancelled first, so that it ends its tools and removes its directories.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext, ForkServerContext, SpawnContext
from typing import Any, Final, TypeVar

_T = TypeVar("_T")

GRACE_SECONDS: Final = 10.0
"""How long a process that must stop may take to clean up. When it ends, its tools are ended too."""

_MOST_OF_PATH: Final = 70
"""The longest path of a temporary directory in which a fork server can have its socket."""

_lock: Final = threading.Lock()
_idle: Final = threading.Event()
_idle.set()
_writers: Final[set[Connection]] = set()
_is_stopping = False
_running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None


def worker_context() -> SpawnContext | ForkServerContext:
    """How processes are started: by a fork server if possible, because that is quick, and has no threads."""
    is_short = len(os.fsencode(tempfile.gettempdir())) <= _MOST_OF_PATH
    can_fork = is_short and "forkserver" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver") if can_fork else multiprocessing.get_context("spawn")


@contextlib.contextmanager
def stopping_pipe(context: BaseContext) -> Iterator[Connection]:
    """A pipe for `stop_with` of other processes. They stop when the `with` block ends, and when this process stops."""
    reader, writer = context.Pipe(duplex=False)
    with _lock:
        _writers.add(writer)
    if _is_stopping:
        writer.close()
    try:
        yield reader
    finally:
        with _lock:
            _writers.discard(writer)
        writer.close()
        reader.close()


def stop_with(pipe: Connection) -> None:
    """Let this process stop when the other end of a pipe is closed. Ctrl-C and the like alone do not stop it any more:
    they are sent to the process that has the other end, too, and would leave no time to clean up."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda _number, _frame: None)  # Not ignored: tools would inherit that.
    threading.Thread(target=_watch, args=(pipe,), name="haft-stopping", daemon=True).start()


def run_stoppable(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine, and cancel it when this process must stop."""
    return asyncio.run(_noted(work))


async def _noted(work: Coroutine[Any, Any, _T]) -> _T:
    global _running
    task = asyncio.ensure_future(work)
    with _lock:
        _running = (asyncio.get_running_loop(), task)
        _idle.clear()
        if _is_stopping:
            task.cancel()
    try:
        return await task
    finally:
        with _lock:
            _running = None
            _idle.set()


def _watch(pipe: Connection) -> None:
    global _is_stopping
    wait([pipe])
    with _lock:
        _is_stopping = True
        for each in _writers:
            each.close()
        if _running is not None:
            loop, task = _running
            loop.call_soon_threadsafe(task.cancel)
    _idle.wait(GRACE_SECONDS)
    if (parent := multiprocessing.parent_process()) is not None:
        wait([parent.sentinel], GRACE_SECONDS)  # If the parent lives, it ends this process itself.
    os._exit(1)
