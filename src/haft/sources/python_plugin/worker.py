"""Runs in the host: starts the worker process of a plugin, sends it one call after another, and reads its messages."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from haft.contracts import (
    Answer,
    Command,
    Deadlock,
    EndedChild,
    Failure,
    HaftError,
    QuestionMethod,
    RunId,
    Session,
    SessionLauncher,
    Stream,
    ToolContext,
    ToolResult,
    needing_secrets,
)
from haft.sources.bash_plugin.tool import Policy
from haft.sources.python.frames import END, PART, STDERR, FrameReader, new_marker
from haft.sources.python.isolated import LARGEST_MESSAGE, search_path, worker_argv
from haft.sources.python.results import answer_from, to_json, to_text, valid_text
from haft.sources.python.worker_calls import WorkerCalls
from haft.sources.python_plugin.entries import PluginEntry

LONGEST_FAILURE: Final = 2_000
PROGRAM: Final = (
    "import io, json, sys; request = json.loads(io.FileIO(0, closefd=False).readline()); "
    "sys.path[:] = request['path_of_host']; "
    "from haft.sources.python_plugin.program import main; main(request)"
)
"""The code that a worker starts with. It reads its first line byte by byte, so that the following lines stay in the
pipe for later readers."""


def request_of(
    entry: PluginEntry, marker: bytes, policy: Policy, root: str, *, describe: bool, once: bool = False
) -> bytes:
    """The first line that a worker reads. With `describe`, the worker only describes the tools. With `once`, it carries
    out one call and ends."""
    why = "it is a secret of the caller, and all callers share the process of a Python plugin: use a bash plugin"
    personal = dict.fromkeys(needing_secrets(policy.config, policy.config), why)
    request = {
        "marker": marker.hex(),
        "path_of_host": search_path(),
        "path": entry.path,
        "folder": entry.folder,
        "class": entry.class_name,
        "functions": entry.is_functions,
        "config": to_json({name: value for name, value in policy.config.items() if name not in personal}),
        "unset": {**policy.unset, **personal},
        "root": root,
        "describe": describe,
        "once": once,
    }
    return json.dumps(request).encode("ascii") + b"\n"


def worker_command(entry: PluginEntry, stdin: bytes) -> Command:
    """The command that starts a worker."""
    python, *modes = worker_argv()[:-1]
    # The last word has no effect: it tells people who list processes which plugin this is.
    words = [python, *modes, PROGRAM, entry.path]
    return Command(words, stdin=stdin, readable=tuple(dict.fromkeys(_readable(entry))))


def _readable(entry: PluginEntry) -> Iterator[str]:
    """The paths that a worker may read: Python, haft, the plugin's folder, and the host's module search path. A path
    that contains the home directory is left out."""
    yield from (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable))
    yield from sys.modules[__name__.partition(".")[0]].__path__
    home = os.path.realpath(os.path.expanduser("~")) + "/"
    for place in (entry.folder, *search_path()):
        if place and os.path.exists(place) and not home.startswith(os.path.realpath(place).rstrip("/") + "/"):
            yield place


class WorkerListener:
    """Receives a worker's output: keeps its messages, and passes other output to the current call."""

    def __init__(self, marker: bytes) -> None:
        self.context: ToolContext | None = None
        self.answer: asyncio.Future[Mapping[str, Any] | None] | None = None
        """The answer to the current call; None as its result means that the process has ended."""
        self.messages: list[Mapping[str, Any]] = []
        self.calls = WorkerCalls()
        self._frames = FrameReader(marker, lambda data: self._output("stdout", data), self._piece)
        self._message = bytearray()

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stdout":
            self._frames.feed(data)
        else:
            self._output(stream, data)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        if self.context is not None:
            self.context.processes_ended(children)

    def _output(self, stream: Stream, data: bytes) -> None:
        if self.context is not None:
            self.context.output(stream, data)

    def _piece(self, kind: bytes, data: bytes) -> None:
        if kind == STDERR:
            self._output("stderr", data)
        elif kind in (PART, END):
            if len(self._message) <= LARGEST_MESSAGE:
                self._message += data
            if kind == END:
                message = bytes(self._message)
                self._message.clear()
                self._hear(message)

    def _hear(self, message: bytes) -> None:
        # A plugin can forge these messages, so every field is checked.
        if len(message) > LARGEST_MESSAGE:
            message = json.dumps(
                {"answer": {"failure": f"its result is larger than {LARGEST_MESSAGE:_} bytes"}}
            ).encode()
        try:
            fields = json.loads(message)
        except (ValueError, RecursionError):
            return
        if not isinstance(fields, dict):
            return
        if self.context is not None and not {"call", "progress", "ask"}.isdisjoint(fields):
            self._during_call(fields, self.context)
        elif "answer" in fields and self.answer is not None and not self.answer.done():
            self.answer.set_result(fields["answer"] if isinstance(fields["answer"], dict) else {})
        elif len(self.messages) < 10:
            self.messages.append(fields)

    def _during_call(self, message: Mapping[str, Any], context: ToolContext) -> None:
        with contextlib.suppress(TypeError, ValueError, LookupError):  # A malformed message is ignored.
            if "call" in message:
                self.calls.make(message["call"], context)
            elif "ask" in message:
                self.calls.ask(message["ask"], context)
            else:
                progress = message["progress"]
                context.progress(str(progress["message"]), fraction=progress["fraction"], **progress["facts"])


class PluginWorker:
    """One process for one plugin, started at its first call. It carries out one call after another."""

    def __init__(self, entry: PluginEntry, policy: Policy, root: str, launcher: SessionLauncher | None) -> None:
        self._entry = entry
        self.policy = policy
        self._root = root
        self._launcher = launcher
        self._turn: asyncio.Lock | None = None
        self._starting = asyncio.Lock()
        self._session: Session | None = None
        self._ending: asyncio.Task[None] | None = None
        """Waits for the end of the process."""
        self._listener: WorkerListener | None = None

    async def call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> Answer:
        """Call one tool. If the call is cancelled, the process ends and the plugin's state is lost."""
        self._turn = self._turn or asyncio.Lock()
        if self._listener is not None and self._listener.context is not None:
            busy = self._listener.context.run
            if busy in context.chain:
                raise Deadlock(
                    f"`{tool}` was not called: a plugin carries out one call after another, and its current call {busy}"
                    " waits for this one"
                )
        async with self._turn:
            session, listener = await self._alive()
            listener.context = context
            listener.answer = asyncio.get_running_loop().create_future()
            listener.calls.begun(session.send)
            try:
                session.send(_request(tool, arguments, context))
                # After the request: waking the helper takes as long as the worker takes to begin.
                session.begin_call()
                message = await listener.answer
                if message is None:
                    return await self._died(tool, session)
                await session.end_call()
                return _answer(message)
            except asyncio.CancelledError:
                await self.end()
                raise
            finally:
                listener.context = None
                listener.answer = None

    async def call_alone(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> Answer:
        """Call one tool in a process that is started for this call, within the call's confinement."""
        listener = WorkerListener(marker := new_marker())
        listener.context, listener.answer = context, asyncio.get_running_loop().create_future()
        first = request_of(self._entry, marker, self.policy, self._root, describe=False, once=True)
        command = worker_command(self._entry, first + _request(tool, arguments, context))
        end = await context.launcher.run(replace(command, on_start=listener.calls.begun), listener)
        message = listener.answer.result() if listener.answer.done() else None
        return _ended(tool, listener, end.code) if message is None else _answer(message)

    @property
    def session(self) -> Session | None:
        """The worker process, even if it has just ended; None if there is none."""
        return self._session

    @property
    def busy_with(self) -> RunId | None:
        """The run of the call that the process is carrying out; None if it is idle."""
        return None if self._listener is None or self._listener.context is None else self._listener.context.run

    @property
    def is_busy(self) -> bool:
        return self._turn is not None and self._turn.locked()

    async def started(self) -> Session:
        """The worker process, which is started if it does not run."""
        return (await self._alive())[0]

    async def _alive(self) -> tuple[Session, WorkerListener]:
        async with self._starting:
            return await self._found()

    async def _found(self) -> tuple[Session, WorkerListener]:
        if self._session is not None and self._listener is not None and not self._session.is_over:
            return self._session, self._listener
        assert self._launcher is not None
        marker = new_marker()
        self._listener = WorkerListener(marker)
        first = request_of(self._entry, marker, self.policy, self._root, describe=False)
        grant = self._entry.reference.grant
        command = worker_command(self._entry, first)
        self._session = await self._launcher.start(command, self._listener, grant, lambda: self.busy_with)
        # With an empty context, because the process outlives the call that started it.
        self._ending = asyncio.create_task(_tell_end(self._session, self._listener), context=contextvars.Context())
        return self._session, self._listener

    async def _died(self, tool: str, session: Session) -> Answer:
        assert self._listener is not None
        self._session = None
        try:
            code = (await session.wait()).code
        except HaftError as error:
            return Answer(failure=error.failure(), hit=getattr(error, "limit", None))
        except (Exception, asyncio.CancelledError) as error:
            return Answer(failure=Failure("tool-failed", f"the worker process of `{tool}` ended: {error}"))
        return _ended(tool, self._listener, code)

    async def end(self) -> None:
        """End the process, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            await session.end()


async def _tell_end(session: Session, listener: WorkerListener) -> None:
    """Wait for the end of a worker process, and end the wait for its answer."""
    with contextlib.suppress(Exception, asyncio.CancelledError):  # `session.wait` raises it again for the call.
        await session.wait()
    if listener.answer is not None and not listener.answer.done():
        listener.answer.set_result(None)


def _request(tool: str, arguments: Mapping[str, Any], context: ToolContext) -> bytes:
    """The line that sends a call to a worker."""
    request = {
        "tool": tool,
        "arguments": dict(arguments),
        "cwd": context.workspace.locate(context.cwd),
        "context": {
            "run": context.run,
            "thread": context.thread,
            "who": context.who,
            "chain": list(context.chain),
            "canAsk": [method for method in get_args(QuestionMethod) if context.can_ask(method)],
        },
    }
    return json.dumps(request).encode("ascii") + b"\n"


def _ended(tool: str, listener: WorkerListener, code: int) -> Answer:
    """The answer for a worker that ended before it answered."""
    why = next((each["failed"] for each in listener.messages if isinstance(each.get("failed"), str)), None)
    what = f"could not be loaded: {why}" if why else f"exited {code} before it answered"
    return Answer(exit_code=code, failure=Failure("tool-failed", f"the worker process of `{tool}` {what}"))


def _answer(message: Mapping[str, Any]) -> Answer:
    if message.get("failure") is not None:
        why = valid_text(str(message["failure"]))
        why = why if len(why) <= LONGEST_FAILURE else f"{why[:LONGEST_FAILURE]}…"
        return Answer(failure=Failure("tool-failed", why))
    result = to_json(message.get("result"))
    if isinstance(content := message.get("content"), list):
        return answer_from(ToolResult(str(message.get("text", "")), result, content))
    return Answer(text=to_text(result), result=None if isinstance(result, str) else result)
