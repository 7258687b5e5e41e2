"""The launcher that tools use to run commands: it passes on the output, and ends every process of a command.

The launcher decides and confines nothing: the sandbox and the limits are fields of the request that it sends to a
`Starter`, which starts the process. A deadline reaches the launcher as a cancellation. The output goes to an
`OutputSink`, which limits it.
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
from typing import TYPE_CHECKING, Any

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
from haft.processes.streams import Drain, Feed, pass_on, pipe, resize
from haft.processes.terminal import TerminalLink
from haft.processes.views import view_socket
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.processes.egress import EgressCall

QUIET_SECONDS = 0.25
"""How long a pipe may stay silent before we stop reading it, if a process that does not belong to the command still has
the pipe open."""

MAX_DRAIN_SECONDS = 2.0
"""How long we go on reading after all processes of the command have ended, if another process still writes to its
pipes."""


class StaleHelper(Exception):
    """The helper sees another workspace than the host, and started nothing."""


def plain_starter() -> Starter:
    """The object that starts children without a sandbox on this system."""
    return Helper() if sys.platform == "linux" else Direct()


class ProcessLauncher:
    """Runs commands with a given environment, in a directory of the workspace."""

    def __init__(
        self,
        starter: Starter,
        environment: Mapping[str, str],
        open_directory: Callable[[str], int],
        helper_fields: Callable[[Command, int], Mapping[str, Any]],
        limits: Limits,
        ran: Callable[[], None] = lambda: None,
        view: Callable[[int], None] | None = None,
        witness: Callable[[], int | None] = lambda: None,
        network: Callable[[], Awaitable[EgressCall]] | None = None,
        first_on_path: str | None = None,
    ) -> None:
        """`ran` is called after a command that was started has ended. `view` gets a descriptor of the workspace as a
        command in a layer sees it; `witness` returns an inotify descriptor for the watch on that layer.
        `first_on_path` is a directory that comes first on PATH, whatever PATH the command asks for."""
        self._first_on_path = first_on_path
        self._network = network
        """Opens the network of a command; None if the command's network is not decided by host."""
        self._view = view
        self._witness = witness
        self._starter = starter
        self._environment = environment
        self._open_directory = open_directory
        self._helper_fields = helper_fields
        """Returns the fields of the helper's request for a command in a directory: sandbox and limits."""
        self._limits = limits
        self._ran = ran

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        begun = await self._begin(command, sink, keeps_open=command.on_start is not None or command.input is not None)
        if command.input is not None and begun.feed is not None:
            pass_on(command.input, begun.feed, asyncio.get_running_loop())
        if command.on_start is not None and begun.feed is not None:
            command.on_start(begun.feed.send)
        return await self._wait_for_end(command, sink, begun)

    async def start(self, command: Command, sink: OutputSink, *, counts_calls: bool = True) -> ProcessSession:
        """Start a program that runs until it is ended, and that takes more input meanwhile. With `counts_calls`, the
        helper hears when a call of the program begins."""
        begun = await self._begin(command, sink, keeps_open=True)
        ending = asyncio.create_task(self._wait_for_end(command, sink, begun))
        return ProcessSession(begun, ending, counts_calls=counts_calls)

    async def _begin(self, command: Command, sink: OutputSink, *, keeps_open: bool) -> _Started:
        check(command)
        loop = asyncio.get_running_loop()
        directory = self._open_directory(command.cwd)
        env = {**self._environment, **command.env}
        if self._first_on_path is not None:
            env["PATH"] = f"{self._first_on_path}:{env.get('PATH', os.defpath)}"
        has_input = bool(command.stdin) or keeps_open
        with contextlib.ExitStack() as theirs:
            theirs.callback(os.close, directory)
            helper_fields = self._helper_fields(command, directory)
            if command.terminal is not None:
                helper_fields = {**helper_fields, "terminal": list(command.terminal.size())}
            out_read, out_write = pipe(command.pipe_bytes)
            theirs.callback(os.close, out_write)
            err_read, err_write = pipe(command.pipe_bytes)
            theirs.callback(os.close, err_write)
            if command.stdin_descriptor is not None:
                has_input, in_read, in_write = False, os.dup(command.stdin_descriptor), -1
            elif has_input:
                in_read, in_write = os.pipe()
                if command.pipe_bytes is not None:
                    resize(in_write, command.pipe_bytes)
            else:
                in_read, in_write = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1
            theirs.callback(os.close, in_read)
            share = None if self._view is None else theirs.enter_context(view_socket(self._view, loop))
            network = None
            try:
                if self._network is not None:
                    network = await self._network()
                    theirs.callback(network.release_channel)
                handle = await self._starter.start(
                    Request(
                        command.argv,
                        env,
                        directory,
                        in_read,
                        out_write,
                        out_write if command.merges_streams else err_write,
                        has_input or command.stdin_descriptor is not None,
                        share,
                        None if network is None else network.channel,
                        self._witness(),
                        helper_fields,
                    )
                )
            except BaseException:
                for descriptor in (out_read, err_read, *((in_write,) if has_input else ())):
                    os.close(descriptor)
                raise
        if command.on_process is not None:
            command.on_process(handle.crash)
        link = None
        if command.terminal is not None and isinstance(handle, HelperHandle):
            link = TerminalLink(command.terminal, sink, loop)
            handle.on_terminal = link.take
        drains = (
            Drain(out_read, functools.partial(sink.output, "stdout"), loop, command.until_writable),
            Drain(err_read, functools.partial(sink.output, "stderr"), loop, command.until_writable),
        )
        feed = Feed(in_write, command.stdin, loop, keeps_open=keeps_open) if has_input else None
        if network is not None and isinstance(handle, HelperHandle):
            network.find_program = functools.partial(program_of_socket, handle)
        return _Started(handle, drains, feed, network, link)

    async def _wait_for_end(self, command: Command, sink: OutputSink, begun: _Started) -> Exit:
        """Wait until the command has ended and all its output was read. Returns how the command ended."""
        drains = begun.drains
        try:
            ending, cancelled = await until_ended(begun.handle, kill_at_once=command.kill_at_once)
            await until_drained((*drains, *(() if begun.terminal is None else begun.terminal.drains)))
        finally:
            if begun.terminal is not None:
                begun.terminal.close()
            if begun.feed is not None:
                begun.feed.close()
            for drain in drains:
                drain.close()
            if begun.network is not None:
                await begun.network.wait_for_reports()
        if ending.failed is None and ending.replaced is None and not ending.stale:
            self._ran()
        if ending.ended or ending.left:
            sink.processes_ended((*ending.ended, *ending.left))
        if cancelled is not None:
            raise cancelled
        for drain in (*drains, *(() if begun.terminal is None else begun.terminal.drains)):
            if drain.failure is not None:
                raise drain.failure
        return exit_of(command, ending, self._limits)


@dataclass(frozen=True, slots=True)
class _Started:
    """A program that was started, with its pipes."""

    handle: Handle
    drains: tuple[Drain, Drain]
    feed: Feed | None
    network: EgressCall | None = None
    terminal: TerminalLink | None = None


async def program_of_socket(handle: HelperHandle, address: str, port: int) -> str | None:
    """The command line of the process of a call that has a TCP socket with this address and port; None if it is not
    found."""
    answer = await handle.order({"do": "whose", "address": address, "port": port})
    return str(answer["program"]) if answer.get("program") else None


class ProcessSession:
    """A running program that takes input until it is ended."""

    def __init__(self, begun: _Started, ending: asyncio.Task[Exit], *, counts_calls: bool) -> None:
        self._begin = begun
        self._ending = ending
        self._counts_calls = counts_calls

    @property
    def is_over(self) -> bool:
        return self._ending.done()

    def send(self, data: bytes) -> Awaitable[None]:
        assert self._begin.feed is not None
        return self._begin.feed.send(data)

    async def order(self, words: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send the helper an order about the running program and return the answer, which is empty if no helper started
        the program. Raises `ConnectionResetError` if the program has ended."""
        handle = self._begin.handle
        return await handle.order(words) if isinstance(handle, HelperHandle) else {}

    def begin_call(self) -> None:
        _stdout, stderr = self._begin.drains
        stderr.read_waiting()
        handle = self._begin.handle
        if self._counts_calls and isinstance(handle, HelperHandle):
            handle.begin_call()

    async def end_call(self) -> None:
        _stdout, stderr = self._begin.drains
        stderr.read_waiting()  # The answer came on stdout, after everything that was written there before.
        if self._begin.network is not None:
            await self._begin.network.report_open_connections()

    async def wait(self) -> Exit:
        return await asyncio.shield(self._ending)

    async def end(self) -> None:
        self._ending.cancel()
        await asyncio.gather(self._ending, return_exceptions=True)


async def until_ended(handle: Handle, *, kill_at_once: bool = False) -> tuple[Ending, asyncio.CancelledError | None]:
    """Wait until the child and all its descendants have ended. Returns how the child ended, and None. If this wait is
    cancelled, the processes are ended first, and the `CancelledError` is returned instead of None, not raised."""
    cancelled: asyncio.CancelledError | None = None
    while not handle.ending.done():
        try:
            await asyncio.shield(handle.ending)
        except asyncio.CancelledError as error:
            cancelled = error
            if kill_at_once:
                handle.kill_and_report()
            else:
                handle.terminate()
    return handle.ending.result(), cancelled


async def until_drained(drains: tuple[Drain, ...]) -> None:
    """Read the rest of the pipes. Their writers have ended, so the pipes end too. If a process that does not belong to
    the command has a pipe open, stop after a silence."""
    loop = asyncio.get_running_loop()
    since = loop.time()
    while waiting := [drain for drain in drains if not drain.finished.done()]:
        if any(drain.is_paused for drain in waiting):
            await asyncio.wait([drain.finished for drain in waiting], timeout=QUIET_SECONDS)
            since = loop.time()
            continue
        silence = loop.time() - max(since, *(drain.last_read for drain in waiting))
        if silence >= QUIET_SECONDS or loop.time() - since >= MAX_DRAIN_SECONDS:
            return
        await asyncio.wait([drain.finished for drain in waiting], timeout=QUIET_SECONDS - silence)


_LIMIT_TEXTS = {
    "memory_bytes": "its processes reached {:_} bytes of memory",
    "max_processes": "it had {:_} processes",
    "cpu_seconds": "its processes reached {:g} s of processor time",
    "max_written_bytes": "its processes wrote {:_} bytes",
    "max_written_file_bytes": "it wrote a file that is too large",
    "max_changed_files": "it made or changed {:_} files",
}


def check(command: Command) -> None:
    """Raise a clear error for a command that the kernel would refuse."""
    if not command.argv:
        raise StartFailed("there is no command to run")
    for word in (*command.argv, *command.env, *command.env.values()):
        if "\0" in word:
            raise ToolFailed("an argument or environment variable contains a NUL byte, which no program can receive")


def replaced_error(path: str) -> Conflict:
    """The error of a call that was not run, because the file or directory at `path` was replaced after the decision
    about the call."""
    return Conflict(
        f"it was not run: {path} was replaced after the call was decided", hint="check that path, and call again"
    )


def exit_of(command: Command, ending: Ending, limits: Limits) -> Exit:
    """The exit code as a shell gives it. Raises an error if the command never started, or if a limit ended it."""
    if ending.stale:
        raise StaleHelper
    if ending.replaced is not None:
        raise replaced_error(ending.replaced)
    if ending.spilled is not None:
        name, used = ending.spilled
        raise ScratchFull(name, getattr(limits, name), used)
    if ending.hit is not None:
        name, used = ending.hit
        raise LimitExceeded(name, getattr(limits, name), _LIMIT_TEXTS[name].format(used))
    if ending.status in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ) and limits.max_written_file_bytes:
        limit = limits.max_written_file_bytes
        raise LimitExceeded("max_written_file_bytes", limit, _LIMIT_TEXTS["max_written_file_bytes"])
    if ending.failed is not None:
        number, sentence = ending.failed
        program = command.argv[0]
        if number == errno.ENOENT:
            raise StartFailed(f"`{program}` was not found", hint=f"install `{program}`, or add its directory to PATH")
        if number == errno.EACCES:
            raise StartFailed(f"`{program}` is not executable", hint=f"run `chmod +x {program}`")
        if number == errno.E2BIG:
            raise StartFailed(f"the arguments of `{program}` are too long for this system", hint="pass them in a file")
        raise StartFailed(f"`{program}` cannot be started: {sentence}")
    if ending.status < 0:
        return Exit(code=128 - ending.status, signal=-ending.status)
    return Exit(code=ending.status)
