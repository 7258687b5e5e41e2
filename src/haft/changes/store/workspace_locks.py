"""Workspace locks for maintenance, which holds them only briefly and gives up if a call holds a lock for long."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from haft.changes.commit.area import Area

_SHORTEST, _LONGEST = 0.001, 0.05
_FULL: Final = (errno.EMFILE, errno.ENFILE)


class Busy(Exception):
    """Another process held the lock of a workspace for longer than we wanted to wait."""

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace
        super().__init__(workspace)


@contextlib.contextmanager
def lock_workspaces(
    areas: Sequence[Area], patience: float, stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Lock all these workspaces within this context. Raises `Busy` if some are still locked after `patience` seconds.
    There is no deadlock, because calls hold only one of these locks at a time."""
    end = time.monotonic() + patience
    with contextlib.ExitStack() as held:
        for area in areas:
            try:
                descriptor = os.open(area.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # The workspace's directory in the state home was removed.
            except OSError as error:
                if error.errno in _FULL:
                    raise Busy(area.workspace) from error
                raise
            held.callback(os.close, descriptor)
            _take(descriptor, area.workspace, end, stopped)
        yield


def _take(descriptor: int, what: str, end: float, stopped: Callable[[], bool]) -> None:
    pause = _SHORTEST
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if stopped() or time.monotonic() >= end:
                raise Busy(what) from None
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST)


@contextlib.contextmanager
def lock_file(path: str, patience: float, stopped: Callable[[], bool] = lambda: False) -> Iterator[int]:
    """Lock the file at `path` within this context, and yield its descriptor. Raises `Busy` if another process still
    holds the lock after `patience` seconds."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(descriptor, path, time.monotonic() + patience, stopped)
        yield descriptor
    finally:
        os.close(descriptor)
