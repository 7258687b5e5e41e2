"""Runs a part of a scenario in a process of its own, for faults that end haft's process or change its file systems."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from haft.testing.stopping import stop_with, stopping_pipe, worker_context
from haft.values import dataclass


@dataclass(frozen=True)
class ChildEnd:
    """How a process ended, and all that it sent."""

    code: int | None
    sent: list[Any]


async def in_child(work: Callable[..., None], *arguments: Any) -> ChildEnd:
    """What `run_in_child` returns. If this is cancelled, the process ends first, because it may use what the caller
    then removes."""
    ending = asyncio.ensure_future(asyncio.to_thread(run_in_child, work, *arguments))
    try:
        return await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending
        raise


def run_in_child(work: Callable[..., None], *arguments: Any) -> ChildEnd:
    """Call `work` in a new process, with a function that sends values, and the arguments. Blocks until the process has
    ended."""
    # A child of a fork server is made quickly, and has no threads of this process.
    context = worker_context()
    receiving, sending = context.Pipe(duplex=False)
    sent: list[Any] = []
    with stopping_pipe(context) as pipe:
        child = context.Process(target=_work, args=(pipe, sending, work, *arguments))
        child.start()
        sending.close()
        try:
            while True:
                sent.append(receiving.recv())
        except EOFError:
            pass
        finally:
            receiving.close()
            child.join()
    return ChildEnd(child.exitcode, sent)


def _work(pipe: Connection, sending: Connection, work: Callable[..., None], *arguments: Any) -> None:
    stop_with(pipe)
    with contextlib.suppress(asyncio.CancelledError):
        work(sending.send, *arguments)
    sending.close()
