"""Runs a part of a scenario in a process of its own, for faults that end haft's process or change its file systems."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from haft.values import dataclass


@dataclass(frozen=True)
class ChildEnd:
    """How a process ended, and all that it sent."""

    code: int | None
    sent: list[Any]


def run_in_child(work: Callable[..., None], *arguments: Any) -> ChildEnd:
    """Call `work` in a new process, with a function that sends values, and the arguments. Blocks until the process has
    ended."""
    # A child of a fork server is made quickly, and has no threads of this process.
    context = multiprocessing.get_context("forkserver")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(sending, work, *arguments))
    child.start()
    sending.close()
    sent: list[Any] = []
    try:
        while True:
            sent.append(receiving.recv())
    except EOFError:
        pass
    finally:
        receiving.close()
        child.join()
    return ChildEnd(child.exitcode, sent)


def _work(sending: Connection, work: Callable[..., None], *arguments: Any) -> None:
    work(sending.send, *arguments)
    sending.close()
