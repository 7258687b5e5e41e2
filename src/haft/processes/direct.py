"""Starts children without the helper, on all systems but Linux. The helper is a Linux subreaper: a process that becomes
the parent of its orphaned descendants.

Limits: haft does not find a process that left its process group, and does not end children when the host itself is
killed. `haft doctor` reports both.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading

from haft.processes.handle import Ending, Request

GRACE_SECONDS = 1.0


class DirectHandle:
    """A child in a process group of its own."""

    def __init__(self, process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self.ending: asyncio.Future[Ending] = loop.create_future()
        self._process = process
        self._loop = loop
        threading.Thread(target=self._wait, name="haft-wait", daemon=True).start()

    def _wait(self) -> None:
        status = self._process.wait()
        self._signal(signal.SIGKILL)  # The command has ended; kill the processes that it left in its group.
        with contextlib.suppress(RuntimeError):  # The loop may be closed by now.
            self._loop.call_soon_threadsafe(self._done, status)

    def _done(self, status: int) -> None:
        if not self.ending.done():
            self.ending.set_result(Ending(status=status))

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)
        self._loop.call_later(GRACE_SECONDS, self.kill)

    def kill(self) -> None:
        if not self.ending.done():
            self._signal(signal.SIGKILL)

    kill_and_report = crash = kill


class Direct:
    """Starts children directly from the host process."""

    async def start(self, request: Request) -> DirectHandle:
        loop = asyncio.get_running_loop()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220  it returns when the child has started, not when it ended
                list(request.argv),
                stdin=request.stdin,
                stdout=request.stdout,
                stderr=request.stderr,
                env=dict(request.env),
                cwd=self._path(request.directory),
                start_new_session=True,
            )
        except OSError as error:
            return _NeverStarted(error, loop)
        return DirectHandle(process, loop)

    @staticmethod
    def _path(directory: int) -> str:
        if sys.platform == "darwin":
            return os.fsdecode(fcntl.fcntl(directory, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return f"/dev/fd/{directory}"

    def close(self) -> None:
        """Do nothing: nothing is kept between calls."""


class _NeverStarted(DirectHandle):
    """The handle of a command that could not be executed."""

    def __init__(self, error: OSError, loop: asyncio.AbstractEventLoop) -> None:
        self.ending = loop.create_future()
        self.ending.set_result(Ending(status=127, failed=(error.errno, str(error))))

    def terminate(self) -> None:
        """Do nothing, since nothing runs."""

    def kill(self) -> None:
        """Do nothing, since nothing runs."""

    kill_and_report = crash = kill
