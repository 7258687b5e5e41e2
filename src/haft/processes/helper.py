"""The host's side of the helper program (`supervise`): started on first use, restarted when it died, ended by EOF.

The host never forks itself, is no subreaper and never waits for children it did not make by name, so that it can be
embedded in any program. Linux only; elsewhere `direct` stands in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import weakref

from haft.contracts import EndedChild, StartFailed
from haft.processes.handle import Ending, Request

PROGRAM = os.path.join(os.path.dirname(__file__), "supervise.py")

_open: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _forget_after_fork() -> None:
    """A host that forks must not keep our sockets open in its child: their closing is what ends a tool."""
    for end in list(_open):
        with contextlib.suppress(OSError):
            end.close()


os.register_at_fork(after_in_child=_forget_after_fork)


class HelperHandle:
    """One call's control socket."""

    def __init__(self, control: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.ending: asyncio.Future[Ending] = loop.create_future()
        self._control = control
        self._loop = loop
        self._words = bytearray()
        loop.add_reader(control, self._read)

    def _read(self) -> None:
        try:
            part = self._control.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            part = b""
        self._words += part
        if part and not self._words.endswith(b"\n"):
            return
        self.kill()
        if not self.ending.done():
            self.ending.set_result(self._ending())

    def _ending(self) -> Ending:
        if not self._words.endswith(b"\n"):
            # The supervisor was killed, by its command or from outside; the helper kills what is left.
            return Ending(status=-9)
        report = json.loads(self._words)
        return Ending(
            status=report["status"],
            ended=tuple(EndedChild(pid, name) for pid, name in report["ended"]),
            left=tuple(EndedChild(pid, name, ended=False) for pid, name in report["left"]),
            failed=None if report["failed"] is None else (report["failed"][0], report["failed"][1]),
        )

    def terminate(self) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"T")

    def kill(self) -> None:
        """Close the socket: to the supervisor this is the host's death."""
        self._loop.remove_reader(self._control)
        self._control.close()


class Helper:
    """Starts children through the helper program."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._server: socket.socket | None = None

    async def start(self, request: Request) -> HelperHandle:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        _open.add(ours)
        try:
            descriptors = [theirs.fileno(), request.stdin, request.stdout, request.stderr, request.directory]
            await self._hand_over(descriptors)
            ours.setblocking(False)
            words = json.dumps({"argv": list(request.argv), "env": dict(request.env)}).encode()
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(ours, len(words).to_bytes(4, "big") + words)
            return HelperHandle(ours, loop)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    async def _hand_over(self, descriptors: list[int]) -> None:
        for attempt in (1, 2):
            server = self._server or self._begin()
            try:
                while True:
                    try:
                        socket.send_fds(server, [b"r"], descriptors)
                        return
                    except BlockingIOError:
                        await asyncio.sleep(0.002)  # Its queue is full: it forks as fast as it can.
            except OSError as error:
                self.close()
                if attempt == 2:
                    raise StartFailed(f"the helper process cannot be reached: {error}") from error

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _open.add(ours)
        ours.setblocking(False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env={},
            )
        except OSError as error:
            ours.close()
            raise StartFailed(f"the helper process cannot be started with {sys.executable}: {error}") from error
        finally:
            theirs.close()
        self._server = ours
        return ours

    def close(self) -> None:
        """End the helper. Calls that still run go on under their own supervisors."""
        server, process = self._server, self._process
        self._server = self._process = None
        if server is not None:
            server.close()
        if process is not None:
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
