"""The host's side of a plugin's worker: starts it, hands it one call after another, and hears what it says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from haft.contracts import (
    Answer,
    Command,
    Deadlock,
    EndedChild,
    Failure,
    HaftError,
    RunId,
    Session,
    SessionLauncher,
    Stream,
    ToolContext,
)
from haft.sources.bash_plugin.tool import Policy
from haft.sources.python.frames import END, PART, STDERR, Frames, new_marker
from haft.sources.python.isolated import LARGEST_MESSAGE, search_path, worker_argv
from haft.sources.python.results import to_json, to_text, valid_text
from haft.sources.python.worker_calls import WorkerCalls
from haft.sources.python_plugin.entries import PluginEntry

LONGEST_FAILURE: Final = 2_000
PROGRAM: Final = (
    "import io, json, sys; request = json.loads(io.FileIO(0, closefd=False).readline()); "
    "sys.path[:] = request['path_of_host']; "
    "from haft.sources.python_plugin.program import main; main(request)"
)
"""Its first line is read byte by byte: what follows is for whoever reads then."""


def request_of(
    entry: PluginEntry, marker: bytes, policy: Policy, root: str, *, describe: bool, once: bool = False
) -> bytes:
    """The first line that a worker reads. With `once` it answers one call."""
    request = {
        "marker": marker.hex(),
        "path_of_host": search_path(),
        "path": entry.path,
        "folder": entry.folder,
        "class": entry.class_name,
        "functions": entry.is_functions,
        "config": to_json(dict(policy.config)),
        "unset": dict(policy.unset),
        "root": root,
        "describe": describe,
        "once": once,
    }
    return json.dumps(request).encode("ascii") + b"\n"


def worker_command(entry: PluginEntry, stdin: bytes) -> Command:
    """What starts a worker."""
    python, *modes = worker_argv()[:-1]
    # The last word is for whoever looks at what runs.
    words = [python, *modes, PROGRAM, entry.path]
    return Command(words, stdin=stdin, readable=tuple(dict.fromkeys(_readable(entry))))


def _readable(entry: PluginEntry) -> Iterator[str]:
    """Python, haft, and the plugin's own files."""
    yield from (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable))
    yield from sys.modules[__name__.partition(".")[0]].__path__
    home = os.path.realpath(os.path.expanduser("~")) + "/"
    for place in (entry.folder, *search_path()):
        if place and os.path.exists(place) and not home.startswith(os.path.realpath(place).rstrip("/") + "/"):
            yield place


class Hearing:
    """The sink of a worker's output: messages are kept, the rest goes to whoever's call it is."""

    def __init__(self, marker: bytes) -> None:
        self.context: ToolContext | None = None
        self.answer: asyncio.Future[Mapping[str, Any]] | None = None
        self.said: list[Mapping[str, Any]] = []
        self.calls = WorkerCalls()
        self._frames = Frames(marker, lambda data: self._output("stdout", data), self._piece)
        self._message = bytearray()

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stdout":
            self._frames.feed(data)
        else:
            self._output(stream, data)

    def ended(self, children: Sequence[EndedChild]) -> None:
        if self.context is not None:
            self.context.ended(children)

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
        # What a plugin does to its own process it can also do to these messages: nothing is taken on trust.
        if len(message) > LARGEST_MESSAGE:
            message = json.dumps(
                {"answer": {"failure": f"its result is larger than {LARGEST_MESSAGE:_} bytes"}}
            ).encode()
        try:
            said = json.loads(message)
        except (ValueError, RecursionError):
            return
        if not isinstance(said, dict):
            return
        if self.context is not None and ("call" in said or "progress" in said):
            self._during_call(said, self.context)
        elif "answer" in said and self.answer is not None and not self.answer.done():
            self.answer.set_result(said["answer"] if isinstance(said["answer"], dict) else {})
        elif len(self.said) < 10:
            self.said.append(said)

    def _during_call(self, said: Mapping[str, Any], context: ToolContext) -> None:
        with contextlib.suppress(TypeError, ValueError, LookupError):  # It is no word of ours.
            if "call" in said:
                self.calls.make(said["call"], context)
            else:
                word = said["progress"]
                context.progress(str(word["message"]), fraction=word["fraction"], **word["facts"])


class PluginWorker:
    """One process for one plugin, started at its first call. Its calls come one after another."""

    def __init__(self, entry: PluginEntry, policy: Policy, root: str, launcher: SessionLauncher | None) -> None:
        self._entry = entry
        self.policy = policy
        self._root = root
        self._launcher = launcher
        self._turn: asyncio.Lock | None = None
        self._starting = asyncio.Lock()
        self._session: Session | None = None
        self._hearing: Hearing | None = None

    async def call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> Answer:
        """Have one tool called. A call that is cancelled takes the process with it, and what it kept in its state."""
        self._turn = self._turn or asyncio.Lock()
        if self._hearing is not None and self._hearing.context is not None:
            busy = self._hearing.context.run
            if busy in context.chain:
                raise Deadlock(
                    f"`{tool}` was not called: calls of one plugin come one after another, and {busy}, which is"
                    " one of them, waits for this one"
                )
        async with self._turn:
            session, hearing = await self._alive()
            hearing.context = context
            hearing.answer = asyncio.get_running_loop().create_future()
            hearing.calls.begun(session.send)
            over = asyncio.ensure_future(session.ended())
            try:
                await session.begin_call()
                session.send(_request(tool, arguments, context))
                await asyncio.wait((over, hearing.answer), return_when=asyncio.FIRST_COMPLETED)
                if not hearing.answer.done():
                    return await self._died(tool, over)
                for _ in range(3):  # What it wrote before is heard before.
                    await asyncio.sleep(0)
                return _answer(hearing.answer.result())
            except asyncio.CancelledError:
                await self.end()
                raise
            finally:
                over.cancel()
                hearing.context = None
                hearing.answer = None

    async def call_alone(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> Answer:
        """Have one tool called by a process that is started for this call, within what confines the call."""
        hearing = Hearing(marker := new_marker())
        hearing.context, hearing.answer = context, asyncio.get_running_loop().create_future()
        first = request_of(self._entry, marker, self.policy, self._root, describe=False, once=True)
        command = worker_command(self._entry, first + _request(tool, arguments, context))
        end = await context.launcher.run(replace(command, begun=hearing.calls.begun), hearing)
        return _answer(hearing.answer.result()) if hearing.answer.done() else _ended(tool, hearing, end.code)

    @property
    def session(self) -> Session | None:
        """The process, where there is one or was one until just now."""
        return self._session

    @property
    def busy_with(self) -> RunId | None:
        """The run of the call that it answers now."""
        return None if self._hearing is None or self._hearing.context is None else self._hearing.context.run

    @property
    def is_busy(self) -> bool:
        return self._turn is not None and self._turn.locked()

    async def started(self) -> Session:
        """The process, started where there is none."""
        return (await self._alive())[0]

    async def _alive(self) -> tuple[Session, Hearing]:
        async with self._starting:
            return await self._found()

    async def _found(self) -> tuple[Session, Hearing]:
        if self._session is not None and self._hearing is not None and not self._session.is_over:
            return self._session, self._hearing
        assert self._launcher is not None
        marker = new_marker()
        self._hearing = Hearing(marker)
        first = request_of(self._entry, marker, self.policy, self._root, describe=False)
        grant = self._entry.reference.grant
        self._session = await self._launcher.start(worker_command(self._entry, first), self._hearing, grant)
        return self._session, self._hearing

    async def _died(self, tool: str, over: asyncio.Future[Any]) -> Answer:
        assert self._hearing is not None
        self._session = None
        try:
            code = (await over).code
        except HaftError as error:
            return Answer(failure=error.failure(), hit=getattr(error, "limit", None))
        except (Exception, asyncio.CancelledError) as error:
            return Answer(failure=Failure("tool-failed", f"the worker process of `{tool}` ended: {error}"))
        return _ended(tool, self._hearing, code)

    async def end(self) -> None:
        """End the process, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            await session.end()


def _request(tool: str, arguments: Mapping[str, Any], context: ToolContext) -> bytes:
    """The line by which a worker is told of a call."""
    request = {
        "tool": tool,
        "arguments": dict(arguments),
        "cwd": context.workspace.locate(context.cwd),
        "context": {"run": context.run, "thread": context.thread, "who": context.who, "chain": list(context.chain)},
    }
    return json.dumps(request).encode("ascii") + b"\n"


def _ended(tool: str, hearing: Hearing, code: int) -> Answer:
    """What is said of a worker that ended before it answered."""
    why = next((said["failed"] for said in hearing.said if isinstance(said.get("failed"), str)), None)
    what = f"could not be loaded: {why}" if why else f"exited {code} before it answered"
    return Answer(exit_code=code, failure=Failure("tool-failed", f"the worker process of `{tool}` {what}"))


def _answer(said: Mapping[str, Any]) -> Answer:
    if said.get("failure") is not None:
        why = valid_text(str(said["failure"]))
        why = why if len(why) <= LONGEST_FAILURE else f"{why[:LONGEST_FAILURE]}…"
        return Answer(failure=Failure("tool-failed", why))
    result = to_json(said.get("result"))
    return Answer(text=to_text(result), result=None if isinstance(result, str) else result)
