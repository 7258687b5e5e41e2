"""The host's side of the helper programs: started on first use, restarted when they died, ended by EOF.

The host never forks itself, is no subreaper and never waits for children it did not make by name, so that it can be
embedded in any program. Linux only; elsewhere `direct` stands in.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from haft.contracts import EndedChild, StartFailed
from haft.processes.handle import Ending, Request

Program = Literal["zygote", "plain"]

HELLO_SECONDS = 20.0
ORDER, TOLD, VIEW = b"R", b'{"told": ', b"V"
"""Before what is said about a program that goes on, before its answer, and what comes with a descriptor."""
GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF)
MOST_MESSAGE = 1 << 20

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BOOT = "import sys; sys.path.append(sys.argv[1]); from haft.helper.{} import main; main(int(sys.argv[2]))"
"""Python's own library comes first: whatever else lies beside haft is not looked at."""

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
        self._views: list[int] = []
        self._waiting: deque[asyncio.Future[dict[str, Any]]] = deque()
        """For the answers to orders, in their order."""
        loop.add_reader(control, self._read)

    def _read(self) -> None:
        try:
            part, views, _flags, _address = socket.recv_fds(self._control, 65536, 1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            part, views = b"", []
        for view in views:
            os.set_inheritable(view, False)  # `recv_fds` drops MSG_CMSG_CLOEXEC in some Pythons.
            self._views.append(view)
        self._words += part
        self._hear_told()
        if part and not self._words.endswith(b"\n"):
            return
        self.kill()
        while self._views:
            os.close(self._views.pop())
        while self._waiting:
            _answered(self._waiting.popleft(), None)
        if not self.ending.done():
            self.ending.set_result(self._ending())

    def _hear_told(self) -> None:
        """Take the answers to orders out of what was said, each with the descriptor that came before it."""
        if self._words.startswith(VIEW):
            del self._words[:1]
        while self._words.startswith(TOLD) and (end := self._words.find(b"\n")) >= 0:
            answer = json.loads(self._words[:end])["told"]
            del self._words[: end + 1]
            while self._views:
                answer["view"] = self._views.pop()
            _answered(self._waiting.popleft(), answer)

    async def order(self, words: Mapping[str, Any]) -> dict[str, Any]:
        """Have something done with a program that goes on. `ConnectionResetError` where it has ended."""
        message = json.dumps(words).encode()
        try:
            self._control.send(ORDER + len(message).to_bytes(4, "big") + message)
        except OSError as error:
            raise ConnectionResetError("it has ended") from error
        waiting: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._waiting.append(waiting)
        return await waiting

    def _ending(self) -> Ending:
        if not self._words.endswith(b"\n"):
            # Whoever watched over it was killed, from outside or for want of memory; what is left goes with it.
            return Ending(status=-9)
        report = json.loads(self._words)
        if report.get("stale"):
            return Ending(status=127, stale=True)
        if "replaced" in report:
            return Ending(status=127, replaced=report["replaced"])
        return Ending(
            status=report["status"],
            ended=tuple(EndedChild(pid, name) for pid, name in report["ended"]),
            left=tuple(EndedChild(pid, name, ended=False) for pid, name in report["left"]),
            failed=None if report["failed"] is None else (report["failed"][0], report["failed"][1]),
            hit=None if report["hit"] is None else (report["hit"][0], report["hit"][1]),
            spilled=None if report.get("spilled") is None else (report["spilled"][0], report["spilled"][1]),
            kept=bool(report.get("kept")),
        )

    def terminate(self) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"T")

    def hurry(self) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"K")

    def kill(self) -> None:
        """Close the socket: to the other side this is the host's death."""
        self._loop.remove_reader(self._control)
        self._control.close()


def _answered(waiting: asyncio.Future[dict[str, Any]], answer: dict[str, Any] | None) -> None:
    """Whoever waits may have gone meanwhile."""
    if waiting.done():
        if answer is not None and "view" in answer:
            os.close(answer["view"])
        return
    if answer is None:
        waiting.set_exception(ConnectionResetError("it has ended"))
    else:
        waiting.set_result(answer)


class Helper:
    """Starts children through a helper program."""

    def __init__(self, program: Program = "plain", site: Mapping[str, Any] | None = None) -> None:
        self._program = program
        self._site = dict(site or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._server: socket.socket | None = None
        self._hello: asyncio.Future[dict[str, Any]] | None = None

    def begin(self) -> None:
        """Start it, and wait for nothing."""
        if self._hello is None:
            self._begin()

    async def hello(self) -> dict[str, Any]:
        """What the helper says it can do here, once it runs. `StartFailed` where it does not answer."""
        for attempt in (1, 2):
            if self._hello is None or (self._hello.done() and self._server is None):
                self._begin()
            assert self._hello is not None
            try:
                return await asyncio.shield(self._hello)
            except (OSError, ValueError, TimeoutError) as error:
                self.close()
                if attempt == 2:
                    raise StartFailed(f"the helper process does not answer: {error}") from error
        raise AssertionError

    async def start(self, request: Request) -> HelperHandle:
        return HelperHandle(await self.told(request), asyncio.get_running_loop())

    async def told(self, request: Request) -> socket.socket:
        """Have it started; the socket over which it can be ended, and its end is told."""
        kind = json.dumps(request.terms.get("kind", {})).encode()

        async def hand_over(theirs: int) -> None:
            descriptors = handed(theirs, request)
            if self._program == "plain":
                descriptors.append(request.directory)
            await self._hand_over(kind, descriptors)

        return await told_by(request, hand_over)

    async def _hand_over(self, kind: bytes, descriptors: list[int]) -> None:
        for attempt in (1, 2):
            await self.hello()
            server = self._server
            try:
                if server is None:
                    raise BrokenPipeError(errno.EPIPE, "it has ended")
                while True:
                    try:
                        socket.send_fds(server, [kind], descriptors)
                        return
                    except BlockingIOError:
                        await asyncio.sleep(0.002)  # Its queue is full: it forks as fast as it can.
            except OSError as error:
                if error.errno not in GONE:
                    # It may be this message alone; others must not pay for it.
                    raise StartFailed(f"the helper process cannot be told: {error}") from error
                self.close()
                if attempt == 2:
                    raise StartFailed(f"the helper process cannot be reached: {error}") from error

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _open.add(ours)
        ours.setblocking(False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BOOT.format(self._program), SOURCE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env={},
            )
            ours.send(json.dumps(self._site).encode())
        except OSError as error:
            ours.close()
            raise StartFailed(f"the helper process cannot be started with {sys.executable}: {error}") from error
        finally:
            theirs.close()
        self._server = ours
        self._hello = asyncio.ensure_future(_heard(ours))

    def close(self) -> None:
        """End the helper. In the sandbox everything it started ends with it; plain calls go on under their own
        supervisors until they are told to end."""
        server, process = self._server, self._process
        self._server = self._process = None
        if self._hello is not None and not self._hello.done():
            self._hello.cancel()
        self._hello = None
        if server is not None:
            server.close()
        if process is not None:
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def handed(theirs: int, request: Request) -> list[int]:
    """The descriptors that go with a request."""
    return [theirs, request.stdin, request.stdout, request.stderr, *request.extra.values()]


async def told_by(request: Request, hand_over: Callable[[int], Awaitable[None]]) -> socket.socket:
    """A socket of one call, on which the request was sent, when its other end was handed over."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    _open.add(ours)
    try:
        said = {
            **request.terms,
            "argv": list(request.argv),
            "env": dict(request.env),
            "stdin": request.has_stdin,
            "handed": list(request.extra),
        }
        words = json.dumps(said).encode()
        await hand_over(theirs.fileno())
        ours.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(ours, len(words).to_bytes(4, "big") + words)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours


async def _heard(server: socket.socket) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(HELLO_SECONDS):
        words = await loop.sock_recv(server, MOST_MESSAGE)
    if not words:
        raise ConnectionResetError("it ended at once")
    found: dict[str, Any] = json.loads(words)
    return found
