"""Runs the helper programs for the host: starts a helper on first use, restarts it if it died, ends it by closing its
socket.

The host process never forks, does not adopt orphaned processes (it is no subreaper), and waits only for the children
that it started itself. So it can be embedded in any program. Linux only; other systems use `direct`.
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

Program = Literal["zygote", "plain", "egress"]

HELLO_SECONDS = 20.0
ORDER, CALL, CRASH, ANSWER, VIEW, TERMINAL = b"R", b"C", b"X", b'{"told": ', b"V", b"P"
"""The first bytes of an order about a running program, of the news that a call of it begins, of the answer to an order,
of a message with a descriptor, and of the message with the controlling side of the program's pseudoterminal."""
GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF)
MAX_MESSAGE = 1 << 20

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BOOT = "import sys; sys.path.append(sys.argv[1]); from haft.helper.{} import main; main(int(sys.argv[2]))"
"""haft's directory is appended to `sys.path`, so that Python's own library comes first: no module beside haft can
replace a standard one."""

_open: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _forget_after_fork() -> None:
    """In a child that the host forks, close the host's sockets: a tool ends only when no process has the tool's socket
    open any more."""
    for end in list(_open):
        with contextlib.suppress(OSError):
            end.close()


os.register_at_fork(after_in_child=_forget_after_fork)


class HelperHandle:
    """The handle of a child, over the control socket of its call."""

    def __init__(self, control: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.ending: asyncio.Future[Ending] = loop.create_future()
        self._control = control
        self._loop = loop
        self._words = bytearray()
        self._views: list[int] = []
        self._waiting: deque[asyncio.Future[dict[str, Any]]] = deque()
        """Futures of the answers to orders, oldest first."""
        self.on_terminal: Callable[[int], None] | None = None
        """Takes the controlling side of the program's pseudoterminal, if the program gets one."""
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
        self._read_answers()
        if part and not self._words.endswith(b"\n"):
            return
        self.kill()
        while self._views:
            os.close(self._views.pop())
        while self._waiting:
            _resolve_answer(self._waiting.popleft(), None)
        if not self.ending.done():
            self.ending.set_result(self._ending())

    def _read_answers(self) -> None:
        """Take the helper's complete answers out of the received bytes, each with the descriptor that came before
        it."""
        if self._words.startswith(TERMINAL):
            del self._words[:1]
            if self._views and self.on_terminal is not None:
                self.on_terminal(self._views.pop())
        if self._words.startswith(VIEW):
            del self._words[:1]
        while self._words.startswith(ANSWER) and (end := self._words.find(b"\n")) >= 0:
            answer = json.loads(self._words[:end])["told"]
            del self._words[: end + 1]
            while self._views:
                answer["view"] = self._views.pop()
            _resolve_answer(self._waiting.popleft(), answer)

    async def order(self, words: Mapping[str, Any]) -> dict[str, Any]:
        """Send the helper an order about a running program, and return the helper's answer. Raises
        `ConnectionResetError` if the program has ended."""
        message = json.dumps(words).encode()
        try:
            self._control.send(ORDER + len(message).to_bytes(4, "big") + message)
        except OSError as error:
            raise ConnectionResetError("it has ended") from error
        waiting: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._waiting.append(waiting)
        return await waiting

    def begin_call(self) -> None:
        """Tell the helper that a call of a running program begins. The helper does not answer."""
        # If the socket is full, the helper has not read the news of earlier calls yet, and the oldest serves as well.
        with contextlib.suppress(OSError):
            self._control.send(CALL)

    def _ending(self) -> Ending:
        if not self._words.endswith(b"\n"):
            # Its supervisor was killed, from outside or because memory ran out; the call's processes end with it.
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

    def kill_and_report(self) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"K")

    def crash(self) -> None:
        with contextlib.suppress(OSError):
            self._control.send(CRASH)

    def kill(self) -> None:
        """Close the socket, which ends the call: the helper takes this for the death of the host."""
        self._loop.remove_reader(self._control)
        self._control.close()


def _resolve_answer(waiting: asyncio.Future[dict[str, Any]], answer: dict[str, Any] | None) -> None:
    """Give an answer to the task that waits for it; the task may have been cancelled. `answer` is None if the program
    has ended."""
    if waiting.done():
        if answer is not None and "view" in answer:
            os.close(answer["view"])
        return
    if answer is None:
        waiting.set_exception(ConnectionResetError("it has ended"))
    else:
        waiting.set_result(answer)


_spares: dict[Program, tuple[subprocess.Popen[bytes], socket.socket]] = {}
"""Programs that run already and wait for their first message."""


def start_spare(program: Program) -> None:
    """Start a helper program before it is known what it is for: the next `HelperProcess` takes it. If that fails now,
    it is tried again then."""
    if program not in _spares:
        with contextlib.suppress(OSError):
            _spares[program] = _start(program)


def _take_spare(program: Program) -> tuple[subprocess.Popen[bytes], socket.socket] | None:
    spare = _spares.pop(program, None)
    if spare is None or spare[0].poll() is None:
        return spare
    spare[1].close()
    return None


def _start(program: Program) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    _open.add(ours)
    ours.setblocking(False)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BOOT.format(program), SOURCE, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            cwd="/",
            env={},
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


class HelperProcess:
    """A running helper program, and the socket over which the host talks to it."""

    def __init__(self, program: Program, site: Mapping[str, Any]) -> None:
        """Start the program, and send `site` as its first message. Raises `StartFailed`."""
        self.loop = asyncio.get_running_loop()
        try:
            self._process, self.socket = _take_spare(program) or _start(program)
        except OSError as error:
            raise StartFailed(f"the helper process cannot be started with {sys.executable}: {error}") from error
        try:
            self.socket.send(json.dumps(site).encode())
        except OSError as error:
            self.close()
            raise StartFailed(f"the helper process does not take its first message: {error}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether the program has ended."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the program: it ends when its socket closes."""
        self.socket.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Helper:
    """Starts child processes through a helper program."""

    def __init__(self, program: Program = "plain", site: Mapping[str, Any] | None = None) -> None:
        self._program = program
        self._site = dict(site or {})
        self._process: HelperProcess | None = None
        self._hello: asyncio.Future[dict[str, Any]] | None = None

    def begin(self) -> None:
        """Start the helper, without waiting for its first message."""
        if self._hello is None:
            self._begin()

    async def hello(self) -> dict[str, Any]:
        """The first message of the helper: what it can do on this machine. Raises `StartFailed` if no message comes."""
        for attempt in (1, 2):
            if self._hello is None or (self._hello.done() and self._process is None):
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
        return HelperHandle(await self.open_call(request), asyncio.get_running_loop())

    async def open_call(self, request: Request) -> socket.socket:
        """Let the helper start the command, and return the command's control socket."""
        kind = json.dumps(request.helper_fields.get("kind", {})).encode()

        async def hand_over(theirs: int) -> None:
            descriptors = request_descriptors(theirs, request)
            if self._program == "plain":
                descriptors.append(request.directory)
            await self._hand_over(kind, descriptors)

        return await open_call_socket(request, hand_over)

    async def _hand_over(self, kind: bytes, descriptors: list[int]) -> None:
        for attempt in (1, 2):
            await self.hello()
            try:
                if self._process is None:
                    raise BrokenPipeError(errno.EPIPE, "it has ended")
                server = self._process.socket
                while True:
                    try:
                        socket.send_fds(server, [kind], descriptors)
                        return
                    except BlockingIOError:
                        await asyncio.sleep(0.002)  # The helper's queue is full.
            except OSError as error:
                if error.errno not in GONE:
                    # Perhaps only this message failed, so keep the helper for the other calls.
                    raise StartFailed(f"the request cannot be sent to the helper process: {error}") from error
                self.close()
                if attempt == 2:
                    raise StartFailed(f"the helper process cannot be reached: {error}") from error

    def _begin(self) -> None:
        self._process = HelperProcess(self._program, self._site)
        self._hello = asyncio.ensure_future(_read_hello(self._process.socket))

    def close(self) -> None:
        """End the helper. Calls in the sandbox end with it. Calls without a sandbox go on under their own supervisors
        until they are ended."""
        process, self._process = self._process, None
        if self._hello is not None and not self._hello.done():
            self._hello.cancel()
        self._hello = None
        if process is not None:
            process.close()


def request_descriptors(theirs: int, request: Request) -> list[int]:
    """The descriptors to send with a request."""
    return [theirs, request.stdin, request.stdout, request.stderr, *request.extra.values()]


async def open_call_socket(request: Request, hand_over: Callable[[int], Awaitable[None]]) -> socket.socket:
    """Open the control socket of one call, pass its other end to `hand_over`, send the request over the socket, and
    return the host's end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    _open.add(ours)
    try:
        fields = {
            **request.helper_fields,
            "argv": list(request.argv),
            "env": dict(request.env),
            "stdin": request.has_stdin,
            "handed": list(request.extra),
        }
        words = json.dumps(fields).encode()
        await hand_over(theirs.fileno())
        ours.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(ours, len(words).to_bytes(4, "big") + words)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours


async def _read_hello(server: socket.socket) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(HELLO_SECONDS):
        words = await loop.sock_recv(server, MAX_MESSAGE)
    if not words:
        raise ConnectionResetError("it ended at once")
    found: dict[str, Any] = json.loads(words)
    return found
