"""Having workspaces to oneself for a moment, where that can be had soon: whoever tidies up gives way to calls."""

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
    """A workspace is at work, and was for longer than we wait."""

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace
        super().__init__(workspace)


@contextlib.contextmanager
def lock_workspaces(
    areas: Sequence[Area], patience: float, stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """With these workspaces, all at once; `Busy` where that cannot be had within `patience` seconds. Everybody else
    takes one of these locks at a time, so nobody waits for us while we wait for them."""
    end = time.monotonic() + patience
    with contextlib.ExitStack() as held:
        for area in areas:
            try:
                descriptor = os.open(area.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # Its place in the state home is gone, and all that was in it.
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
    """Alone among those who take the lock at `path`; the descriptor of that file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(descriptor, path, time.monotonic() + patience, stopped)
        yield descriptor
    finally:
        os.close(descriptor)
