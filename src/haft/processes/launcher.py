"""The launcher that sources and built-ins are handed: one command, streamed, ended for certain.

Above it stand the tools; below it a starter. It neither judges nor confines: the sandbox and the limits are written
in the terms it passes on. Deadlines arrive as cancellation, output limits lie in the sink.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from haft.contracts import (
    Command,
    Conflict,
    Exit,
    LimitExceeded,
    Limits,
    OutputSink,
    ScratchFull,
    StartFailed,
    ToolFailed,
)
from haft.processes.direct import Direct
from haft.processes.handle import Ending, Handle, Request, Starter
from haft.processes.helper import Helper, HelperHandle
from haft.processes.streams import Drain, Feed, pipe
from haft.processes.views import shared
from haft.values import dataclass

QUIET_SECONDS = 0.25
"""How long a pipe that a stranger still holds may stay silent before we stop listening to it."""

MOST_SECONDS = 2.0
"""How long we listen to a stranger who goes on writing after the whole tree is dead."""


class Stale(Exception):
    """The helper sees another directory than we do, and started nothing."""


def plain_starter() -> Starter:
    """The way of starting children without a sandbox that this machine has."""
    return Helper() if sys.platform == "linux" else Direct()


class ProcessLauncher:
    """Runs commands with a built environment, in a directory beneath the workspace."""

    def __init__(
        self,
        starter: Starter,
        environment: Mapping[str, str],
        open_directory: Callable[[str], int],
        terms: Callable[[Command, int], Mapping[str, Any]],
        limits: Limits,
        ran: Callable[[], None] = lambda: None,
        view: Callable[[int], None] | None = None,
        witness: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`ran` is called when a command has ended that was started. `view` gets a descriptor of the workspace as a
        command above a layer sees it; `witness` is where its layer is watched."""
        self._view = view
        self._witness = witness
        self._starter = starter
        self._environment = environment
        self._open_directory = open_directory
        self._terms = terms
        """Sandbox and limits for a command in a directory, as the starter wants to be told."""
        self._limits = limits
        self._ran = ran

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        begun = await self._begun(command, sink, keeps_open=command.on_start is not None)
        if command.on_start is not None and begun.feed is not None:
            command.on_start(begun.feed.send)
        return await self._seen_out(command, sink, begun)

    async def start(self, command: Command, sink: OutputSink) -> ProcessSession:
        """Run until it is ended, with more input on the way."""
        begun = await self._begun(command, sink, keeps_open=True)
        return ProcessSession(begun, asyncio.create_task(self._seen_out(command, sink, begun)))

    async def _begun(self, command: Command, sink: OutputSink, *, keeps_open: bool) -> _Begun:
        check(command)
        loop = asyncio.get_running_loop()
        directory = self._open_directory(command.cwd)
        env = {**self._environment, **command.env}
        has_input = bool(command.stdin) or keeps_open
        with contextlib.ExitStack() as theirs:
            theirs.callback(os.close, directory)
            terms = self._terms(command, directory)
            out_read, out_write = pipe()
            theirs.callback(os.close, out_write)
            err_read, err_write = pipe()
            theirs.callback(os.close, err_write)
            if has_input:
                in_read, in_write = os.pipe()
            else:
                in_read, in_write = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1
            theirs.callback(os.close, in_read)
            share = None if self._view is None else theirs.enter_context(shared(self._view, loop))
            try:
                handle = await self._starter.start(
                    Request(
                        command.argv,
                        env,
                        directory,
                        in_read,
                        out_write,
                        err_write,
                        has_input,
                        share,
                        self._witness(),
                        terms,
                    )
                )
            except BaseException:
                for descriptor in (out_read, err_read, *((in_write,) if has_input else ())):
                    os.close(descriptor)
                raise
        drains = (
            Drain(out_read, functools.partial(sink.output, "stdout"), loop),
            Drain(err_read, functools.partial(sink.output, "stderr"), loop),
        )
        feed = Feed(in_write, command.stdin, loop, keeps_open=keeps_open) if has_input else None
        return _Begun(handle, drains, feed)

    async def _seen_out(self, command: Command, sink: OutputSink, begun: _Begun) -> Exit:
        """Wait until it has ended and everything it said was heard."""
        drains = begun.drains
        try:
            ending, cancelled = await until_ended(begun.handle, kill_at_once=command.kill_at_once)
            await until_drained(drains)
        finally:
            if begun.feed is not None:
                begun.feed.close()
            for drain in drains:
                drain.close()
        if ending.failed is None and ending.replaced is None and not ending.stale:
            self._ran()
        if ending.ended or ending.left:
            sink.processes_ended((*ending.ended, *ending.left))
        if cancelled is not None:
            raise cancelled
        for drain in drains:
            if drain.failure is not None:
                raise drain.failure
        return exit_of(command, ending, self._limits)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A program that was started."""

    handle: Handle
    drains: tuple[Drain, Drain]
    feed: Feed | None


class ProcessSession:
    """A program that goes on until it is ended."""

    def __init__(self, begun: _Begun, ending: asyncio.Task[Exit]) -> None:
        self._begun = begun
        self._ending = ending

    @property
    def is_over(self) -> bool:
        return self._ending.done()

    def send(self, data: bytes) -> Awaitable[None]:
        assert self._begun.feed is not None
        return self._begun.feed.send(data)

    async def order(self, words: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have the helper do something with it while it goes on. `ConnectionResetError` where it has ended; nothing is
        done, and nothing said, where no helper started it."""
        handle = self._begun.handle
        return await handle.order(words) if isinstance(handle, HelperHandle) else {}

    async def begin_call(self) -> None:
        with contextlib.suppress(ConnectionResetError):  # Whoever waits for its end hears of that.
            await self.order({"do": "call"})

    async def wait(self) -> Exit:
        return await asyncio.shield(self._ending)

    async def end(self) -> None:
        self._ending.cancel()
        await asyncio.gather(self._ending, return_exceptions=True)


async def until_ended(handle: Handle, *, kill_at_once: bool = False) -> tuple[Ending, asyncio.CancelledError | None]:
    """Wait until nothing of the tree is left. Cancellation ends the tree first and is handed back, not raised."""
    cancelled: asyncio.CancelledError | None = None
    while not handle.ending.done():
        try:
            await asyncio.shield(handle.ending)
        except asyncio.CancelledError as error:
            cancelled = error
            if kill_at_once:
                handle.hurry()
            else:
                handle.terminate()
    return handle.ending.result(), cancelled


async def until_drained(drains: tuple[Drain, ...]) -> None:
    """Read what is still in the pipes. Every writer is dead, so they end by themselves; only where a stranger was
    handed one do we stop after a silence."""
    loop = asyncio.get_running_loop()
    since = loop.time()
    while waiting := [drain for drain in drains if not drain.finished.done()]:
        silence = loop.time() - max(since, *(drain.last_read for drain in waiting))
        if silence >= QUIET_SECONDS or loop.time() - since >= MOST_SECONDS:
            return
        await asyncio.wait([drain.finished for drain in waiting], timeout=QUIET_SECONDS - silence)


_PASSED = {
    "memory_bytes": "its processes reached {:_} bytes of memory",
    "max_processes": "it had {:_} processes",
    "cpu_seconds": "its processes reached {:g} s of processor time",
    "max_written_bytes": "its processes wrote {:_} bytes",
    "max_written_file_bytes": "a file that it wrote grew too large",
    "max_changed_files": "it made or changed {:_} files",
}


def check(command: Command) -> None:
    """Refuse what the kernel would refuse less clearly."""
    if not command.argv:
        raise StartFailed("there is no command to run")
    for word in (*command.argv, *command.env, *command.env.values()):
        if "\0" in word:
            raise ToolFailed("an argument or environment variable holds a NUL byte, which no program can receive")


def replaced(path: str) -> Conflict:
    """The error of a call that was resolved to something that does not lie there any more."""
    return Conflict(
        f"it was not run: {path} is not what it was when the call was decided about", hint="look at it, and call again"
    )


def exit_of(command: Command, ending: Ending, limits: Limits) -> Exit:
    """The ending in the shell's terms. A command that never started is an error, and so is one that a limit ended."""
    if ending.stale:
        raise Stale
    if ending.replaced is not None:
        raise replaced(ending.replaced)
    if ending.spilled is not None:
        name, used = ending.spilled
        raise ScratchFull(name, getattr(limits, name), used)
    if ending.hit is not None:
        name, used = ending.hit
        raise LimitExceeded(name, getattr(limits, name), _PASSED[name].format(used))
    if ending.status in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ) and limits.max_written_file_bytes:
        limit = limits.max_written_file_bytes
        raise LimitExceeded("max_written_file_bytes", limit, _PASSED["max_written_file_bytes"])
    if ending.failed is not None:
        number, sentence = ending.failed
        program = command.argv[0]
        if number == errno.ENOENT:
            raise StartFailed(f"`{program}` is not on this machine", hint=f"install `{program}` or mend PATH")
        if number == errno.EACCES:
            raise StartFailed(f"`{program}` may not be executed", hint=f"chmod +x {program}")
        if number == errno.E2BIG:
            raise StartFailed(f"the arguments of `{program}` are too long for this machine", hint="pass them by a file")
        raise StartFailed(f"`{program}` cannot be started: {sentence}")
    if ending.status < 0:
        return Exit(code=128 - ending.status, signal=-ending.status)
    return Exit(code=ending.status)
